/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests for what is said of atoms that stand at one place
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmcoincidence.h"

#include <cstring>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gromacs/topology/symtab.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/smalloc.h"

namespace gmx
{
namespace
{

using ::testing::HasSubstr;

//! Four molecules of an ion and an atom without charge, which it excludes
class FmmCoincidenceTest : public ::testing::Test
{
protected:
    FmmCoincidenceTest()
    {
        open_symtab(&mtop_.symtab);
        mtop_.moltype.resize(1);
        gmx_moltype_t& moltype = mtop_.moltype[0];
        init_t_atoms(&moltype.atoms, 2, false);
        moltype.atoms.nr         = 2;
        moltype.atoms.nres       = 1;
        moltype.atoms.atom[0].q  = 1;
        moltype.atoms.atom[0].qB = 1;
        for (int a = 0; a < 2; a++)
        {
            moltype.atoms.atomname[a]    = put_symtab(&mtop_.symtab, a == 0 ? "NA" : "M");
            moltype.atoms.atom[a].resind = 0;
            moltype.excls.pushBack(std::vector<int>{ 0, 1 });
        }
        moltype.atoms.resinfo[0].name = put_symtab(&mtop_.symtab, "ION");
        mtop_.molblock.resize(1);
        mtop_.molblock[0].type = 0;
        mtop_.molblock[0].nmol = 4;
        mtop_.natoms           = 8;
        mtop_.finalize();
    }
    ~FmmCoincidenceTest() override { done_symtab(&mtop_.symtab); }

    gmx_mtop_t mtop_;
    //! Ions 1 and 3 are at one place, by way of the images; the M at ion 1 has no charge
    std::vector<RVec> x_ = { { 9, 1, 1 }, { 0, 1, 1 }, { 2, 1, 1 },      { 3, 1, 1 },
                             { 4, 1, 1 }, { 5, 1, 1 }, { 4.5, 3.5, -9 }, { 7, 1, 1 } };
    //! A triclinic one
    const std::vector<double> box_ = { 5, 0, 0, 0.5, 2.5, 0, 0, 0, 10 };
};

TEST_F(FmmCoincidenceTest, NamesBothAtoms)
{
    x_[6]                  = x_[2];
    const std::string text = fmmAtomsAtOnePlace("particle 6 stands", mtop_, x_, nullptr);
    EXPECT_THAT(text, HasSubstr("atom 3 (NA of ION 2) and atom 7 (NA of ION 4) stand at one place"));
}

TEST_F(FmmCoincidenceTest, FindsTheOtherAmongImages)
{
    const std::string text = fmmAtomsAtOnePlace("particle 4 stands", mtop_, x_, box_.data());
    EXPECT_THAT(text, HasSubstr("atom 1 (NA of ION 1) and atom 5 (NA of ION 3)"));
}

TEST_F(FmmCoincidenceTest, LeavesOutAtomsThatDoNotInteract)
{
    x_[1]                  = x_[0];
    x_[3]                  = x_[0]; // excluded or without charge
    x_[6]                  = x_[0];
    const std::string text = fmmAtomsAtOnePlace("particle 0 stands", mtop_, x_, nullptr);
    EXPECT_THAT(text, HasSubstr("atom 1 (NA of ION 1) and atom 7 (NA of ION 4)"));
}

TEST_F(FmmCoincidenceTest, LeavesOtherMessagesAsTheyAre)
{
    EXPECT_EQ("forces are not finite", fmmAtomsAtOnePlace("forces are not finite", mtop_, x_, nullptr));
    EXPECT_EQ("particle 8 is none", fmmAtomsAtOnePlace("particle 8 is none", mtop_, x_, nullptr));
}

} // namespace
} // namespace gmx
