/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests for the choice of the gmxfmm backend
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/gmxfmmbackend.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "gromacs/fmm/fmmversion.h"
#include "gromacs/fmm/gmxfmmoptions.h"
#include "gromacs/mdrun/mdmodules.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/utility/keyvaluetreebuilder.h"

namespace gmx
{
namespace
{

//! An input record as grompp makes it, with a backend from the mdp file unless that is empty
std::unique_ptr<t_inputrec> inputrec(CoulombInteractionType coulombtype, const std::string& backend)
{
    auto                ir = std::make_unique<t_inputrec>();
    KeyValueTreeBuilder builder;
    if (!backend.empty())
    {
        builder.rootObject()
                .addObject("fast-multipole-method")
                .addObject("fmm")
                .addValue<std::string>("backend", backend);
    }
    ir->coulombtype = coulombtype;
    ir->params      = new KeyValueTreeObject(builder.build());
    MDModules().adjustInputrecBasedOnModules(ir.get());
    return ir;
}

//! Returns the backend in an input record
std::string storedBackend(const t_inputrec& ir)
{
    return (*ir.params)["fast-multipole-method"].asObject()["fmm"].asObject()["backend"].cast<std::string>();
}

TEST(GmxfmmBackendTest, IsChosenByCoulombtype)
{
    const auto fmm = inputrec(CoulombInteractionType::Fmm, "");
    EXPECT_EQ("gmxfmm", storedBackend(*fmm));
    EXPECT_TRUE(usesGmxfmm(*fmm));
    EXPECT_TRUE(usesGmxfmm(*inputrec(CoulombInteractionType::Fmm, "gmxfmm")));
    const auto pme = inputrec(CoulombInteractionType::Pme, "");
    EXPECT_EQ("inactive", storedBackend(*pme));
    EXPECT_FALSE(usesGmxfmm(*pme));
}

TEST(GmxfmmBackendTest, LeavesOtherBackendsAlone)
{
    EXPECT_FALSE(usesGmxfmm(*inputrec(CoulombInteractionType::Fmm, "exafmm")));
    EXPECT_FALSE(usesGmxfmm(*inputrec(CoulombInteractionType::Fmm, "fmsolvr")));
}

TEST(GmxfmmBackendTest, RefusesNoBackend)
{
    const auto ir = inputrec(CoulombInteractionType::Fmm, "inactive");
    ASSERT_EQ(1, fmmOptions(*ir).errors().size());
    EXPECT_EQ("fmm-backend = inactive is not allowed; it has to be gmxfmm", fmmOptions(*ir).errors()[0]);
}

TEST(GmxfmmBackendTest, IsNotInRecordsOfOtherGromacs)
{
    t_inputrec          ir;
    KeyValueTreeBuilder builder;
    builder.rootObject()
            .addObject("fast-multipole-method")
            .addObject("fmm")
            .addValue<std::string>("backend", "inactive");
    ir.coulombtype = CoulombInteractionType::Fmm;
    ir.params      = new KeyValueTreeObject(builder.build());
    EXPECT_FALSE(usesGmxfmm(ir));
}

} // namespace
} // namespace gmx
