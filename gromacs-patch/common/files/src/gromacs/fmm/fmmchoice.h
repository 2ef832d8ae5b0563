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

#include <cstdint>

#include <array>
#include <vector>

#include "fmmremeasure.h"

namespace gmx
{

class KeyValueTreeObject;
class KeyValueTreeObjectBuilder;
class MDModules;

/*! \libinternal \brief
 * Order, cells and nstlist that were chosen by times, or during the run
 *
 * Another run may choose others, so that checkpoints keep them for the continuation.
 * Numbers are those of the library's options.
 */
struct FmmChoice
{
    //! fmm-accuracy for which they were chosen; 0: nothing was chosen that another run may not choose
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
    /*! \brief Coordinates of all atoms when they were chosen during the run, empty: those of the .tpr file
     *
     * Cells that follow the atoms have a size that comes from these.
     */
    std::vector<double> x;
    //! The box at that time, row by row
    std::array<double, 9> box = { { 0, 0, 0, 0, 0, 0, 0, 0, 0 } };
    //! When errors are measured again
    FmmMeasurementSchedule schedule;
    //! nstlist that times of steps have chosen, 0: they have not
    int nstlist = 0;
    //! Whether the FMM was on a GPU then
    bool isNstlistForGpu = false;
    //! On how many ranks
    int nstlistRanks = 1;
};

//! Adds a choice to the data of a checkpoint, unless there is none, nor a schedule, nor nstlist
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
