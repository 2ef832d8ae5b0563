/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares gmx::FmmChoice and how checkpoints keep it
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMCHOICE_H
#define GMX_FMM_FMMCHOICE_H

#include <array>

namespace gmx
{

class KeyValueTreeObject;
class KeyValueTreeObjectBuilder;
class MDModules;

/*! \libinternal \brief
 * Order and cells that were chosen by times on a GPU
 *
 * Another run may choose others, so that checkpoints keep them for the continuation.
 * Numbers are those of the library's options.
 */
struct FmmChoice
{
    //! fmm-accuracy for which they were chosen; 0: nothing was chosen by times
    double asked = 0;
    //! Accuracy that the library's model is to be asked for
    double accuracy = 0;
    //! Way through the far field
    int m2l = 0;
    //! Expansion order
    int order = 0;
    //! Octree depth
    int depth = 0;
    //! Layers of near cells
    int separation = 0;
    //! Cells along each box vector
    std::array<int, 3> grid = { { 0, 0, 0 } };
};

//! Adds a choice to the data of a checkpoint, unless there is none
void writeFmmChoice(const FmmChoice& choice, KeyValueTreeObjectBuilder builder);
//! Returns the choice that is among the data of a checkpoint, or none
FmmChoice readFmmChoice(const KeyValueTreeObject& data);

/*! \brief Makes checkpoints keep a choice
 *
 * \param[in]     modules  Modules that have not subscribed to notifications yet
 * \param[in,out] choice   Set when a checkpoint is read, read when one is written; it has to last as long
 */
void keepFmmChoice(MDModules* modules, FmmChoice* choice);

} // namespace gmx

#endif
