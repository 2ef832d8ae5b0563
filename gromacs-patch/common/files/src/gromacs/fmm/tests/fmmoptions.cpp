/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests for the mdp options of the fast multipole method
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/gmxfmmoptions.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gromacs/mdrun/mdmodules.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/options/options.h"
#include "gromacs/options/treesupport.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/utility/keyvaluetreebuilder.h"
#include "gromacs/utility/keyvaluetreemdpwriter.h"
#include "gromacs/utility/keyvaluetreetransform.h"
#include "gromacs/utility/stringcompare.h"
#include "gromacs/utility/stringstream.h"
#include "gromacs/utility/textwriter.h"

namespace gmx
{
namespace
{

using MdpValues = std::vector<std::pair<std::string, std::string>>;

//! Returns the options after reading mdp values
FmmOptions optionsFromMdp(const MdpValues& mdpValues)
{
    KeyValueTreeBuilder builder;
    for (const auto& keyAndValue : mdpValues)
    {
        builder.rootObject().addValue(keyAndValue.first, keyAndValue.second);
    }
    FmmOptions options;
    Options    declared;
    options.initMdpOptions(&declared);
    KeyValueTreeTransformer transform;
    transform.rules()->addRule().keyMatchType("/", StringCompareType::CaseAndDashInsensitive);
    options.initMdpTransform(transform.rules());
    auto transformed = transform.transform(builder.build(), nullptr);
    assignOptionsFromKeyValueTree(&declared, transformed.object(), nullptr);
    return options;
}

//! Returns what is written to mdout.mdp
std::string mdpOutput(const FmmOptions& options)
{
    KeyValueTreeBuilder       builder;
    KeyValueTreeObjectBuilder object = builder.rootObject();
    options.buildMdpOutput(&object);
    StringOutputStream stream;
    {
        TextWriter writer(&stream);
        writeKeyValueTreeAsMdp(&writer, builder.build());
    }
    stream.close();
    return stream.toString();
}

TEST(FmmOptionsTest, HasDefaults)
{
    const FmmOptions options = optionsFromMdp({});
    EXPECT_THAT(options.errors(), ::testing::IsEmpty());
    const FmmParameters parameters = options.parameters();
    EXPECT_EQ(4e-4, parameters.accuracy);
    EXPECT_EQ(0, parameters.order);
    EXPECT_THAT(parameters.grid, ::testing::Each(0));
    EXPECT_EQ(-1, parameters.treeDepth);
    EXPECT_EQ(1, parameters.separation);
    EXPECT_EQ(FmmM2L::Auto, parameters.m2l);
    EXPECT_EQ(FmmBoundary::Tinfoil, parameters.boundary);
    EXPECT_TRUE(parameters.measure);
}

TEST(FmmOptionsTest, WritesDefaultsToMdp)
{
    EXPECT_EQ(
            "\n"
            "; Fast multipole method (coulombtype = FMM)\n"
            "; largest relative RMS error of forces; automatic options follow it\n"
            "fmm-accuracy             = 0.0004\n"
            "; expansion order; 0: automatic\n"
            "fmm-order                = 0\n"
            "; cells, or leaves, along each box vector; 0 0 0: automatic\n"
            "fmm-grid                 = 0 0 0\n"
            "; octree depth (octree methods); -1: automatic\n"
            "fmm-tree-depth           = -1\n"
            "; layers of near cells; 0: automatic\n"
            "fmm-separation           = 1\n"
            "; way through the far field: auto, fft, rotation, symmetric, dynamic, naive\n"
            "fmm-m2l                  = auto\n"
            "; surroundings of the system: tinfoil, vacuum, open (with pbc = no)\n"
            "fmm-boundary             = tinfoil\n"
            "; measure errors at the start of mdrun, and choose by them what is automatic\n"
            "fmm-measure              = yes\n"
            "; Lennard-Jones interactions of all pairs of atoms, or beyond a radius of groups at "
            "their centres: full, split\n"
            "fmm-lj                   = full\n"
            "; that radius (nm); 0: automatic\n"
            "fmm-lj-radius            = 0\n"
            "; Library that computes it: gmxfmm\n"
            "fmm-backend              = gmxfmm\n",
            mdpOutput(FmmOptions()));
}

TEST(FmmOptionsTest, ReadsAllValuesInAnySpelling)
{
    const FmmOptions options = optionsFromMdp({ { "fmm_accuracy", "1e-6" },
                                                { "FMM-order", "12" },
                                                { "fmm-grid", "6  7 8" },
                                                { "fmm-separation", "2" },
                                                { "fmm-m2l", "FFT" },
                                                { "fmm-boundary", "Vacuum" },
                                                { "fmm-measure", "no" },
                                                { "fmm-backend", "gmxfmm" } });
    EXPECT_THAT(options.errors(), ::testing::IsEmpty());
    const FmmParameters parameters = options.parameters();
    EXPECT_EQ(1e-6, parameters.accuracy);
    EXPECT_EQ(12, parameters.order);
    EXPECT_THAT(parameters.grid, ::testing::ElementsAre(6, 7, 8));
    EXPECT_EQ(2, parameters.separation);
    EXPECT_EQ(FmmM2L::Fft, parameters.m2l);
    EXPECT_EQ(FmmBoundary::Vacuum, parameters.boundary);
    EXPECT_FALSE(parameters.measure);
}

//! An mdp option, a value that it does not allow and a word of the message
struct RefusedValue
{
    std::string key;
    std::string value;
    std::string allowed;
};

class FmmOptionsRefusedTest : public ::testing::TestWithParam<RefusedValue>
{
};

TEST_P(FmmOptionsRefusedTest, GivesOneErrorWithOptionValueAndRange)
{
    const RefusedValue refused  = GetParam();
    const auto         messages = optionsFromMdp({ { refused.key, refused.value } }).errors();
    EXPECT_THAT(messages,
                ::testing::ElementsAre(
                        ::testing::AllOf(::testing::HasSubstr(refused.key + " = " + refused.value),
                                         ::testing::HasSubstr(refused.allowed))));
}

INSTANTIATE_TEST_SUITE_P(
        OutOfRange,
        FmmOptionsRefusedTest,
        ::testing::Values(RefusedValue{ "fmm-accuracy", "0", "between 1e-12 and 0.1" },
                          RefusedValue{ "fmm-accuracy", "0.5", "between 1e-12 and 0.1" },
                          RefusedValue{ "fmm-accuracy", "nan", "between 1e-12 and 0.1" },
                          RefusedValue{ "fmm-order", "-1", "between 1 and " },
                          RefusedValue{ "fmm-order", "41", "between 1 and " },
                          RefusedValue{ "fmm-grid", "0 4 4", "each between 1 and 1024" },
                          RefusedValue{ "fmm-grid", "4 4 1025", "each between 1 and 1024" },
                          RefusedValue{ "fmm-grid", "4 4", "three numbers" },
                          RefusedValue{ "fmm-grid", "4 4 x", "three numbers" },
                          RefusedValue{ "fmm-tree-depth", "0", "between 1 and 9" },
                          RefusedValue{ "fmm-tree-depth", "-2", "between 1 and 9" },
                          RefusedValue{ "fmm-separation", "3", "between 1 and 2" },
                          RefusedValue{ "fmm-m2l", "fast", "one of auto, fft" },
                          RefusedValue{ "fmm-boundary", "air", "one of tinfoil, vacuum" },
                          RefusedValue{ "fmm-lj", "some", "one of full, split" },
                          RefusedValue{ "fmm-lj-radius", "0.1", "0.4 at least" },
                          RefusedValue{ "fmm-backend", "exafmm", "gmxfmm" }));

INSTANTIATE_TEST_SUITE_P(
        NotOffered,
        FmmOptionsRefusedTest,
        ::testing::Values(RefusedValue{ "fmm-tree-depth", "3", "octree" },
                          RefusedValue{ "fmm-lj-radius", "0.6", "fmm-lj = split" }));

TEST(FmmOptionsTest, OctreeHasDepthAndLeaves)
{
    for (const std::string& method : { "rotation", "symmetric", "dynamic", "naive" })
    {
        const MdpValues  withDepth = { { "fmm-m2l", method }, { "fmm-tree-depth", "3" } };
        const FmmOptions options   = optionsFromMdp(withDepth);
        EXPECT_THAT(options.errors(), ::testing::IsEmpty());
        EXPECT_EQ(3, options.parameters().treeDepth);
        EXPECT_THAT(optionsFromMdp({ { "fmm-m2l", method }, { "fmm-grid", "4 4 6" } }).errors(),
                    ::testing::IsEmpty());
        EXPECT_THAT(optionsFromMdp({ { "fmm-m2l", method }, { "fmm-grid", "4 4 5" } }).errors(),
                    ::testing::ElementsAre(::testing::HasSubstr("multiples of 2")));
        const MdpValues odd = { { "fmm-m2l", method },
                                { "fmm-grid", "8 8 12" },
                                { "fmm-tree-depth", "3" } };
        EXPECT_THAT(optionsFromMdp(odd).errors(),
                    ::testing::ElementsAre(::testing::HasSubstr("multiples of 8")));
    }
    EXPECT_THAT(optionsFromMdp({ { "fmm-m2l", "fft" }, { "fmm-tree-depth", "3" } }).errors(),
                ::testing::ElementsAre(::testing::HasSubstr("fmm-m2l = rotation")));
}

//! Returns the module options of an input record without any
KeyValueTreeObject adjustedParameters(CoulombInteractionType coulombtype)
{
    t_inputrec ir;
    ir.coulombtype = coulombtype;
    ir.params      = new KeyValueTreeObject(KeyValueTreeBuilder().build());
    MDModules().adjustInputrecBasedOnModules(&ir);
    return *ir.params;
}

TEST(FmmOptionsTest, AreDeclaredForFmmOnly)
{
    EXPECT_TRUE(gmxfmmOptionsAreStored(adjustedParameters(CoulombInteractionType::Fmm)));
    EXPECT_FALSE(gmxfmmOptionsAreStored(adjustedParameters(CoulombInteractionType::Pme)));
}

TEST(FmmOptionsTest, AreFoundInInputRecord)
{
    t_inputrec          ir;
    KeyValueTreeBuilder builder;
    auto section = builder.rootObject().addObject("fast-multipole-method").addObject("fmm");
    section.addValue<int>("order", 9);
    section.addValue<std::string>("boundary", "vacuum");
    ir.params      = new KeyValueTreeObject(builder.build());
    ir.coulombtype = CoulombInteractionType::Fmm;
    EXPECT_EQ(9, fmmParameters(ir).order);
    EXPECT_TRUE(fmmNeedsWholeMolecules(ir));
    ir.pbcType = PbcType::No;
    EXPECT_EQ(FmmBoundary::Open, fmmParameters(ir).boundary);
    EXPECT_FALSE(fmmNeedsWholeMolecules(ir));
    ir.pbcType     = PbcType::Xyz;
    ir.coulombtype = CoulombInteractionType::Pme;
    EXPECT_FALSE(fmmNeedsWholeMolecules(ir));
}

//! Returns the parameters of a run
FmmParameters parametersOf(IntegrationAlgorithm integrator, double timeStep, int nstlist)
{
    t_inputrec ir;
    ir.params      = new KeyValueTreeObject(KeyValueTreeBuilder().build());
    ir.coulombtype = CoulombInteractionType::Fmm;
    ir.eI          = integrator;
    ir.delta_t     = timeStep;
    ir.nstlist     = nstlist;
    return fmmParameters(ir);
}

TEST(FmmOptionsTest, CellsAreRenewedInEqualPartsOfNstlist)
{
    const auto onGpu = [](IntegrationAlgorithm integrator, double timeStep, int nstlist)
    { return parametersOf(integrator, timeStep, nstlist).maxStepsInCellsOnGpu; };
    EXPECT_EQ(0, onGpu(IntegrationAlgorithm::MD, 0.002, 10));
    EXPECT_EQ(0, onGpu(IntegrationAlgorithm::MD, 0.002, 25));
    EXPECT_EQ(13, onGpu(IntegrationAlgorithm::MD, 0.002, 26));
    EXPECT_EQ(20, onGpu(IntegrationAlgorithm::MD, 0.002, 80));
    EXPECT_EQ(20, onGpu(IntegrationAlgorithm::MD, 0.002, 100));
    EXPECT_EQ(17, onGpu(IntegrationAlgorithm::MD, 0.002, 50));
    EXPECT_EQ(21, onGpu(IntegrationAlgorithm::VV, 0.002, 0));
    EXPECT_EQ(1, onGpu(IntegrationAlgorithm::MD, 0.1, 10));
    EXPECT_EQ(999996, onGpu(IntegrationAlgorithm::MD, 1e-12, 0));
    EXPECT_EQ(0, onGpu(IntegrationAlgorithm::Steep, 0.002, 100));
}

TEST(FmmOptionsTest, CellsAreRenewedMoreOftenOnACpu)
{
    const auto onCpu = [](IntegrationAlgorithm integrator, double timeStep, int nstlist)
    { return parametersOf(integrator, timeStep, nstlist).maxStepsInCellsOnCpu; };
    EXPECT_EQ(0, onCpu(IntegrationAlgorithm::MD, 0.002, 10));
    EXPECT_EQ(9, onCpu(IntegrationAlgorithm::MD, 0.002, 25));
    EXPECT_EQ(10, onCpu(IntegrationAlgorithm::MD, 0.002, 100));
    EXPECT_EQ(10, onCpu(IntegrationAlgorithm::VV, 0.002, 0));
    EXPECT_EQ(0, onCpu(IntegrationAlgorithm::Steep, 0.002, 100));
}

TEST(FmmOptionsTest, ABoxThatMayTiltGetsNoOctree)
{
    t_inputrec ir;
    ir.params         = new KeyValueTreeObject(KeyValueTreeBuilder().build());
    ir.coulombtype    = CoulombInteractionType::Fmm;
    ir.pbcType        = PbcType::Xyz;
    ir.deform[ZZ][ZZ] = 0.1;
    EXPECT_EQ(FmmM2L::Auto, fmmParameters(ir).m2l);
    ir.deform[YY][XX] = 0.1;
    EXPECT_EQ(FmmM2L::Fft, fmmParameters(ir).m2l);
}

TEST(FmmOptionsTest, KnowsWhatIsLeftToChoose)
{
    FmmParameters parameters;
    EXPECT_FALSE(fmmParametersAreLimited(parameters));
    parameters.order = 6;
    EXPECT_TRUE(fmmParametersAreLimited(parameters));
    EXPECT_FALSE(fmmParametersAreFixed(parameters));
    parameters.treeDepth = 3;
    EXPECT_TRUE(fmmParametersAreFixed(parameters));
}

} // namespace
} // namespace gmx
