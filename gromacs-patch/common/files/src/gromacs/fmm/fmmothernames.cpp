/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what grompp says of mdp options that other implementations of the FMM have
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmothernames.h"

#include "gromacs/fileio/readinp.h"
#include "gromacs/utility/cstringutil.h"
#include "gromacs/utility/stringutil.h"

namespace gmx
{

namespace
{

//! An mdp option of another GROMACS
struct OtherName
{
    const char* name;
    const char* instead;
};

constexpr OtherName c_otherNames[] = {
    { "fmm-override-multipole-order",
      "Use fmm-order in its place, or leave it out: order and cells are chosen for fmm-accuracy." },
    { "fmm-multipole-order",
      "Use fmm-order in its place, or leave it out: order and cells are chosen for fmm-accuracy." },
    { "fmm-override-tree-depth",
      "Use fmm-tree-depth with fmm-m2l = rotation in its place, or leave it out: cells, or an "
      "octree, are chosen for the system." },
    { "fmm-precision", "Use fmm-accuracy in its place, the relative error of the forces." },
    { "fmm-sparse",
      "Leave it out: empty cells cost nothing in the octree of fmm-m2l = rotation, which fmm-m2l = "
      "auto chooses for sparse systems." },
};

} // namespace

std::string fmmOptionInPlaceOf(const std::string& name)
{
    for (const OtherName& other : c_otherNames)
    {
        if (gmx_strcasecmp_min(other.name, name.c_str()) == 0)
        {
            return other.instead;
        }
    }
    return {};
}

void noteOtherFmmNames(ArrayRef<const t_inpfile> options, FmmWarningHandler* wi)
{
    for (const t_inpfile& option : options)
    {
        const std::string instead = fmmOptionInPlaceOf(option.name_);
        if (!instead.empty())
        {
            addFmmNote(wi,
                       formatString("'%s' is an option of another GROMACS with an FMM. ",
                                    option.name_.c_str())
                               + instead);
        }
    }
}

} // namespace gmx
