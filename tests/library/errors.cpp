/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Malformed input gives the right status and a message that names the value; a plan that has refused something works.
 */
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "gmxfmm_measure.h"
#include "support/norms.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

const double infinite   = std::numeric_limits<double>::infinity();
const double notANumber = std::numeric_limits<double>::quiet_NaN();

struct BadOption
{
    std::string                          name;
    std::function<void(gmxfmm_options*)> spoil;
    gmxfmm_status                        status;
    std::string                          named; /* in the message */
};

void PrintTo(const BadOption& bad, std::ostream* out)
{
    *out << bad.name;
}

BadOption integer(const std::string& name, int gmxfmm_options::*member, int value)
{
    return {name, [=](gmxfmm_options* o) { o->*member = value; }, GMXFMM_ERROR_OPTION, std::to_string(value)};
}

/* What a caller's uninitialised or miscast enum holds; a static_cast of such a value would be undefined. */
template <typename Enum>
BadOption enumerator(const std::string& name, Enum gmxfmm_options::*member, int value)
{
    static_assert(sizeof(Enum) == sizeof(int), "C enums are ints");
    return {name, [=](gmxfmm_options* o) { std::memcpy(&(o->*member), &value, sizeof(value)); }, GMXFMM_ERROR_OPTION,
            std::to_string(value)};
}

BadOption option(const std::string& name, const std::function<void(gmxfmm_options*)>& spoil, const std::string& named)
{
    return {name, spoil, GMXFMM_ERROR_OPTION, named};
}

BadOption accuracy(const std::string& name, double value, const std::string& named)
{
    return option(
        name, [=](gmxfmm_options* o) { o->accuracy = value; }, named);
}

void setGrid(gmxfmm_options* o, int nx, int ny, int nz)
{
    o->grid[0] = nx;
    o->grid[1] = ny;
    o->grid[2] = nz;
}

BadOption grid(const std::string& name, int nx, int ny, int nz, const std::string& named)
{
    return option(
        name, [=](gmxfmm_options* o) { setGrid(o, nx, ny, nz); }, named);
}

/* An option that belongs to another way through the far field. */
BadOption
mixed(const std::string& name, gmxfmm_m2l m2l, int gmxfmm_options::*member, int value, const std::string& named)
{
    return option(
        name,
        [=](gmxfmm_options* o)
        {
            o->m2l     = m2l;
            o->*member = value;
        },
        named);
}

/* 0 is no number of these, and not automatic either: the message has the range. */
template <typename Number>
BadOption zero(const std::string& name, Number gmxfmm_options::*member, gmxfmm_method method)
{
    const gmxfmm_option* option = gmxfmm_find_option(name.c_str());
    char                 text[128];
    snprintf(text, sizeof(text), "option %s is 0, allowed is %g to %g, or -1 for automatic", name.c_str(),
             option->lowest, option->highest);
    std::string word = name;
    word[0]          = static_cast<char>(std::toupper(word[0]));
    word.erase(std::remove(word.begin(), word.end(), '_'), word.end());
    return {word + "Zero",
            [=](gmxfmm_options* o)
            {
                o->method   = method;
                o->boundary = method == GMXFMM_TREECODE ? GMXFMM_OPEN : o->boundary;
                o->*member  = 0;
            },
            GMXFMM_ERROR_OPTION, text};
}

const std::vector<BadOption>& badOptions()
{
    static const std::vector<BadOption> all = {
        zero("separation", &gmxfmm_options::separation, GMXFMM_FMM),
        zero("depth", &gmxfmm_options::depth, GMXFMM_FMM),
        zero("num_threads", &gmxfmm_options::num_threads, GMXFMM_FMM),
        zero("theta", &gmxfmm_options::theta, GMXFMM_TREECODE),
        zero("degree", &gmxfmm_options::degree, GMXFMM_TREECODE),
        zero("leaf", &gmxfmm_options::leaf, GMXFMM_TREECODE),
        grid("GridZero", 0, 0, 0, "option grid[0] is 0, allowed is 1 to 1024, or -1 for automatic"),
        integer("OrderMinusTwo", &gmxfmm_options::order, -2),
        integer("Order41", &gmxfmm_options::order, 41),
        integer("Order21InSinglePrecision", &gmxfmm_options::order, 21),
        integer("Separation3", &gmxfmm_options::separation, 3),
        integer("SeparationMinusTwo", &gmxfmm_options::separation, -2),
        integer("Depth10", &gmxfmm_options::depth, 10),
        integer("DepthMinusTwo", &gmxfmm_options::depth, -2),
        integer("ToParentTwo", &gmxfmm_options::m2l_to_parent, 2),
        integer("TruncateMinusTwo", &gmxfmm_options::m2l_truncate, -2),
        integer("TruncateThree", &gmxfmm_options::m2l_truncate, 3),
        integer("VerticalRotationTwo", &gmxfmm_options::vertical_rotation, 2),
        mixed("VerticalRotationWithFft", GMXFMM_M2L_FFT, &gmxfmm_options::vertical_rotation, 1, "vertical_rotation"),
        mixed("DepthWithFft", GMXFMM_M2L_FFT, &gmxfmm_options::depth, 3, "depth"),
        mixed("DepthWithoutMethod", GMXFMM_M2L_AUTO, &gmxfmm_options::depth, 3, "depth"),
        mixed("ToParentWithFft", GMXFMM_M2L_FFT, &gmxfmm_options::m2l_to_parent, 1, "m2l_to_parent"),
        mixed("TruncateWithFft", GMXFMM_M2L_FFT, &gmxfmm_options::m2l_truncate, 1, "m2l_truncate"),
        option(
            "OddGridWithRotation",
            [](gmxfmm_options* o)
            {
                o->m2l = GMXFMM_M2L_ROTATION;
                setGrid(o, 4, 4, 5);
            },
            "rotation"),
        option(
            "GridWithDepth",
            [](gmxfmm_options* o)
            {
                o->m2l   = GMXFMM_M2L_NAIVE;
                o->depth = 3;
                setGrid(o, 12, 12, 12);
            },
            "multiples of 8"),
        option(
            "GridWithOpenOctree",
            [](gmxfmm_options* o)
            {
                o->m2l      = GMXFMM_M2L_NAIVE;
                o->boundary = GMXFMM_OPEN;
                setGrid(o, 4, 4, 4);
            },
            "depth"),
        {"DynamicOnTheCpu",
         [](gmxfmm_options* o)
         {
             o->m2l    = GMXFMM_M2L_DYNAMIC;
             o->device = GMXFMM_CPU;
         },
         GMXFMM_ERROR_UNSUPPORTED, "rotation"},
        integer("ThreadsNegative", &gmxfmm_options::num_threads, -4),
        accuracy("AccuracyZero", 0, "0"),
        accuracy("AccuracyNegative", -1e-3, "-0.001"),
        accuracy("AccuracyTooCoarse", 0.5, "0.5"),
        accuracy("AccuracyTooFine", 1e-13, "1e-13"),
        accuracy("AccuracyNan", notANumber, "nan"),
        accuracy("AccuracyInf", infinite, "inf"),
        grid("GridWithZero", 4, 0, 4, "option grid[1] is 0, allowed is 1 to 1024, or -1 for automatic"),
        grid("GridWithZeroLast", 4, 4, 0, "option grid[2] is 0, allowed is 1 to 1024, or -1 for automatic"),
        grid("GridNegative", 4, -5, 4, "-5"),
        grid("GridPartlyAutomatic", 4, GMXFMM_AUTO, 4, "4 -1 4"),
        {"PrefactorZero", [](gmxfmm_options* o) { o->prefactor = 0; }, GMXFMM_ERROR_OPTION, "prefactor"},
        {"PrefactorNan", [](gmxfmm_options* o) { o->prefactor = notANumber; }, GMXFMM_ERROR_OPTION, "prefactor"},
        enumerator("MethodUnknown", &gmxfmm_options::m2l, 7),
        enumerator("BoundaryUnknown", &gmxfmm_options::boundary, 5),
        enumerator("PrecisionUnknown", &gmxfmm_options::precision, 3),
        enumerator("ArrayTypeUnknown", &gmxfmm_options::array_type, 3),
        enumerator("DeviceUnknown", &gmxfmm_options::device, 4),
    };
    return all;
}

struct BadBox
{
    std::string name;
    Mat3        box;
    std::string named;
};

void PrintTo(const BadBox& bad, std::ostream* out)
{
    *out << bad.name;
}

const std::vector<BadBox>& badBoxes()
{
    static const std::vector<BadBox> all = {
        {"Zero", {0, 0, 0, 0, 0, 0, 0, 0, 0}, "0"},
        {"OneEdgeZero", {3, 0, 0, 0, 0, 0, 0, 0, 3}, "0"},
        {"Coplanar", {1, 2, 3, 4, 5, 6, 5, 7, 9}, "one plane"},
        {"Flat", {3, 0, 0, 0, 3, 0, 1.2345678, 0.7123456, 1e-11}, "one plane"},
        {"FlatAndSkewed", {3, 0, 0, 3000, 3, 0, 1.2345678, 0.7123456, 1e-11}, "one plane"},
        {"Nan", {3, 0, 0, 0, notANumber, 0, 0, 0, 3}, "nan"},
        {"Inf", {3, 0, 0, 0, 3, 0, infinite, 0, 3}, "inf"},
        {"Tiny", {1e-200, 0, 0, 0, 1e-200, 0, 0, 0, 1e-200}, "unit"},
        {"Huge", {1e200, 0, 0, 0, 1e200, 0, 0, 0, 1e200}, "unit"},
    };
    return all;
}

System small()
{
    return ions(boxOfVolume(boxTypes()[0], 20), 20, 2);
}

/* A plan with charges and positions that can be spoilt, and proof that it still works afterwards. */
class Errors : public testing::TestWithParam<gmxfmm_m2l>
{
  protected:
    Errors() : system_(small()), plan_(system_, methodOptions(GetParam(), 4, 3, 1)), before_(plan_.execute(system_.x))
    {
    }
    void expect(gmxfmm_status got, gmxfmm_status status, const std::string& named)
    {
        EXPECT_EQ(got, status) << gmxfmm_status_text(got);
        EXPECT_STRNE(gmxfmm_message(plan_.get()), "");
        EXPECT_EQ(std::strchr(gmxfmm_message(plan_.get()), '\n'), nullptr);
        expectMessage(plan_.get(), named);
    }
    gmxfmm_status setCharges(const std::vector<double>& q)
    {
        return gmxfmm_set_charges(plan_.get(), static_cast<std::int64_t>(q.size()), q.data());
    }
    void expectWorksAsBefore()
    {
        ASSERT_EQ(setCharges(system_.q), GMXFMM_OK);
        plan_.assign(system_.x);
        EXPECT_LT(relativeRms(plan_.execute(system_.x).force, before_.force), 1e-13);
    }
    std::vector<double> spoilt(std::vector<double> values, std::size_t i, double value) const
    {
        values[i] = value;
        return values;
    }

    System system_;
    Plan   plan_;
    Result before_;
};

/* Exclusions as start and list, for 20 particles: row 3 and row 7 have one entry each. */
std::pair<std::vector<int>, std::vector<int>> twoRows(int inRow3, int inRow7)
{
    std::vector<int> start(21, 0);
    for (std::size_t i = 4; i < start.size(); i++)
    {
        start[i] = i < 8 ? 1 : 2;
    }
    return {start, {inRow3, inRow7}};
}

} // namespace

class RefusedOption : public testing::TestWithParam<BadOption>
{
};

TEST_P(RefusedOption, IsNamed)
{
    gmxfmm_options options = defaultOptions();
    GetParam().spoil(&options);
    expectRefused(options, 20, small().box.data(), GetParam().status, GetParam().named);
}

INSTANTIATE_TEST_SUITE_P(Options, RefusedOption, testing::ValuesIn(badOptions()), parameterName<BadOption>);

class RefusedBox : public testing::TestWithParam<BadBox>
{
};

TEST_P(RefusedBox, IsNamedByCreate)
{
    expectRefused(defaultOptions(), 20, GetParam().box.data(), GMXFMM_ERROR_BOX, GetParam().named);
}

TEST_P(RefusedBox, IsNamedBySetBoxAndThePlanKeepsTheOldOne)
{
    const System s = small();
    Plan         plan(s, explicitOptions(4, 3, 3, 3, 1));
    const Result before = plan.execute(s.x);
    EXPECT_EQ(gmxfmm_set_box(plan.get(), GetParam().box.data()), GMXFMM_ERROR_BOX);
    expectMessage(plan.get(), GetParam().named);
    EXPECT_EQ(gmxfmm_enqueue_box(plan.get(), GetParam().box.data(), nullptr), GMXFMM_ERROR_BOX);
    EXPECT_LT(relativeRms(plan.execute(s.x).force, before.force), 1e-13);
}

/* A box that an octree cannot take leaves the one before, and its vectors. */
TEST(RefusedBoxOfAnOctree, LeavesThePlanAsItWas)
{
    const System   s       = small();
    const Mat3     skewed  = {4, 0, 0, 1, 4, 0, 0, 0, 4};
    gmxfmm_options options = defaultOptions();
    options.m2l            = GMXFMM_M2L_ROTATION;
    options.order          = 4;
    options.depth          = 1;
    Plan         plan(s, options);
    const Result before = plan.execute(s.x);
    EXPECT_EQ(gmxfmm_set_box(plan.get(), skewed.data()), GMXFMM_ERROR_UNSUPPORTED);
    EXPECT_EQ(plan.execute(s.x).force, before.force);
    EXPECT_EQ(gmxfmm_set_box(plan.get(), s.box.data()), GMXFMM_OK);
    EXPECT_EQ(plan.execute(s.x).force, before.force);
}

/* Without streams of its own a plan takes the box as it always does. */
TEST(EnqueuedBox, IsThatOfSetBoxOnTheCpu)
{
    const System   s = small();
    gmxfmm_options o = explicitOptions(4, 3, 3, 3, 1);
    o.device         = GMXFMM_CPU;
    Plan set(s, o), enqueued(s, o);
    Mat3 box = s.box;
    box[0] *= 1.01;
    const Result before = set.execute(s.x);
    enqueued.execute(s.x);
    set.setBox(box);
    ASSERT_EQ(gmxfmm_enqueue_box(enqueued.get(), box.data(), nullptr), GMXFMM_OK);
    const Result after = set.execute(s.x);
    EXPECT_GT(relativeRms(after.force, before.force), 1e-4);
    EXPECT_LT(relativeRms(enqueued.execute(s.x).force, after.force), 1e-13);
}

INSTANTIATE_TEST_SUITE_P(Boxes, RefusedBox, testing::ValuesIn(badBoxes()), parameterName<BadBox>);

TEST(RefusedCreate, WithoutPlanOptionsOrBox)
{
    const gmxfmm_options options = defaultOptions();
    const System         s       = small();
    gmxfmm_plan*         plan    = nullptr;
    EXPECT_EQ(gmxfmm_create(nullptr, &options, 20, s.box.data(), nullptr, 0), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_create(&plan, nullptr, 20, s.box.data(), nullptr, 0), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_create(&plan, &options, 20, nullptr, nullptr, 0), GMXFMM_ERROR_NULL);
    EXPECT_EQ(plan, nullptr);
}

TEST(RefusedCreate, WithANegativeNumberOfParticles)
{
    expectRefused(defaultOptions(), -5, small().box.data(), GMXFMM_ERROR_OPTION, "-5");
}

/* Four terabytes, which are not asked for: a process that touched them would be killed. */
TEST(RefusedCreate, MeasuredWithANumberThatIsNone)
{
    const System         s = ions({3, 0, 0, 0, 3, 0, 0, 0, 3}, 4, 1);
    const SystemView     view(s, Boundary::Tinfoil);
    const gmxfmm_options options = defaultOptions();
    for (const std::int64_t n : {std::int64_t(-1), std::numeric_limits<std::int64_t>::min(), std::int64_t(1) << 40})
    {
        gmxfmm_system     system    = view.get();
        gmxfmm_plan*      plan      = nullptr;
        gmxfmm_reference* reference = nullptr;
        char              text[256] = "";
        system.n                    = n;
        EXPECT_EQ(gmxfmm_create_measured(&plan, &options, &system, nullptr, nullptr, nullptr, text, sizeof(text)),
                  GMXFMM_ERROR_OPTION);
        EXPECT_NE(std::string(text).find(std::to_string(n)), std::string::npos) << text;
        EXPECT_EQ(plan, nullptr);
        EXPECT_EQ(gmxfmm_reference_create(&reference, &options, &system, text, sizeof(text)), GMXFMM_ERROR_OPTION);
        EXPECT_NE(std::string(text).find(std::to_string(n)), std::string::npos) << text;
    }
}

TEST(RefusedChoose, BoundsThatAreNone)
{
    const System       s = ions({3, 0, 0, 0, 3, 0, 0, 0, 3}, 20, 1);
    const SystemView   view(s, Boundary::Tinfoil);
    gmxfmm_options     options   = defaultOptions();
    gmxfmm_reference*  reference = nullptr;
    gmxfmm_measurement chosen    = sized<gmxfmm_measurement>();
    char               text[256] = "";
    gmxfmm_system      system    = view.get();
    ASSERT_EQ(gmxfmm_reference_create(&reference, &options, &system, text, sizeof(text)), GMXFMM_OK) << text;
    for (const double bad : {notANumber, -1.0, -infinite, -1e-300})
    {
        gmxfmm_options asked = options;
        EXPECT_EQ(gmxfmm_choose(reference, &asked, bad, infinite, &chosen, nullptr, nullptr, text, sizeof(text)),
                  GMXFMM_ERROR_OPTION);
        EXPECT_NE(std::string(text).find("error_moved"), std::string::npos) << text;
        EXPECT_EQ(gmxfmm_choose(reference, &asked, infinite, bad, &chosen, nullptr, nullptr, text, sizeof(text)),
                  GMXFMM_ERROR_OPTION);
        EXPECT_NE(std::string(text).find("virial_error"), std::string::npos) << text;
    }
    EXPECT_EQ(gmxfmm_choose(reference, &options, infinite, infinite, &chosen, nullptr, nullptr, text, sizeof(text)),
              GMXFMM_OK)
        << text;
    gmxfmm_reference_destroy(reference);
}

TEST(RefusedCreate, WithMoreCellsThanMemory)
{
    gmxfmm_options options = defaultOptions();
    if (options.device != GMXFMM_CPU)
    {
        GTEST_SKIP() << "memory of the host";
    }
    options.order   = 20;
    options.grid[0] = options.grid[1] = options.grid[2] = 1024;
    expectRefused(options, 20, small().box.data(), GMXFMM_ERROR_MEMORY, "1073741824 cells of order 20: fewer cells");
}

TEST(RefusedCreate, CutsTheMessageToItsSize)
{
    gmxfmm_options options = defaultOptions();
    options.order          = 41;
    const System s         = small();
    gmxfmm_plan* plan      = nullptr;
    char         text[9]   = "????????";
    EXPECT_EQ(gmxfmm_create(&plan, &options, 20, s.box.data(), text, 6), GMXFMM_ERROR_OPTION);
    EXPECT_EQ(std::string(text).size(), 5u);
    EXPECT_EQ(text[6], '?'); /* nothing is written behind it */
    EXPECT_EQ(gmxfmm_create(&plan, &options, 20, s.box.data(), nullptr, 0), GMXFMM_ERROR_OPTION);
}

/* The octree's cells are bricks with edges along x, y and z. */
TEST(RefusedCreate, WithABoxThatTheOctreeCannotTake)
{
    for (const BoxType& type : boxTypes())
    {
        for (gmxfmm_m2l m2l : octreeMethods())
        {
            SCOPED_TRACE(type.name);
            const gmxfmm_options options = automatic(m2l);
            const Mat3           box     = boxOfVolume(type, 20);
            if (type.roots[0] > 0)
            {
                gmxfmm_plan* plan = nullptr;
                EXPECT_EQ(gmxfmm_create(&plan, &options, 20, box.data(), nullptr, 0), GMXFMM_OK);
                gmxfmm_destroy(plan);
                continue;
            }
            expectRefused(options, 20, box.data(), GMXFMM_ERROR_UNSUPPORTED, "m2l = fft");
            expectRefused(options, 20, box.data(), GMXFMM_ERROR_UNSUPPORTED, gmxfmm_m2l_name(m2l));
        }
    }
}

/* Such a box later on is refused too, and the plan keeps the one that it has. */
TEST(RefusedSetBox, ThatTheOctreeCannotTake)
{
    const System s = small();
    Plan         plan(s, depthOptions(GMXFMM_M2L_ROTATION, 4, 1, 1));
    const Result before = plan.execute(s.x);
    const Mat3   box    = boxOfVolume(boxTypes()[2], 20);
    EXPECT_EQ(gmxfmm_set_box(plan.get(), box.data()), GMXFMM_ERROR_UNSUPPORTED);
    expectMessage(plan.get(), "m2l = fft");
    EXPECT_LT(relativeRms(plan.execute(s.x).force, before.force), 1e-13);
}

/* What this build cannot do it refuses instead of doing something else. */
TEST(RefusedCreate, WithADeviceThatIsNotThere)
{
    gmxfmm_options options        = defaultOptions();
    options.device                = GMXFMM_CUDA;
    const System        s         = small();
    gmxfmm_plan*        plan      = nullptr;
    char                text[256] = "";
    const gmxfmm_status status    = gmxfmm_create(&plan, &options, 20, s.box.data(), text, sizeof(text));
    if (status == GMXFMM_OK)
    {
        gmxfmm_destroy(plan);
        GTEST_SKIP() << "there is one";
    }
    EXPECT_TRUE(status == GMXFMM_ERROR_UNSUPPORTED || status == GMXFMM_ERROR_DEVICE) << gmxfmm_status_text(status);
    EXPECT_NE(std::string(text), "");
}

/* The suites skip what these ask for where they run on a GPU (createOrSkip). */
TEST(Options, AutomaticIsOneValue)
{
    const System   s = small();
    gmxfmm_options standard, automatic;
    gmxfmm_default_options(&standard);
    automatic       = standard;
    automatic.order = automatic.depth = automatic.separation = automatic.num_threads = GMXFMM_AUTO;
    automatic.grid[0] = automatic.grid[1] = automatic.grid[2] = GMXFMM_AUTO;
    automatic.m2l_truncate = automatic.degree = automatic.leaf = GMXFMM_AUTO;
    automatic.theta                                            = GMXFMM_AUTO;
    EXPECT_EQ(memcmp(&standard, &automatic, sizeof(standard)), 0) << "some default is not automatic";
    gmxfmm_info info[2] = {sized<gmxfmm_info>(), sized<gmxfmm_info>()};
    int         k       = 0;
    for (const gmxfmm_options* options : {&standard, &automatic})
    {
        gmxfmm_plan* plan      = nullptr;
        char         text[256] = "";
        ASSERT_EQ(gmxfmm_create(&plan, options, 20, s.box.data(), text, sizeof(text)), GMXFMM_OK) << text;
        gmxfmm_get_info(plan, &info[k++]);
        gmxfmm_destroy(plan);
    }
    EXPECT_EQ(info[0].order, info[1].order);
    EXPECT_EQ(info[0].separation, info[1].separation);
    EXPECT_EQ(info[0].num_threads, info[1].num_threads);
    for (int d = 0; d < 3; d++)
    {
        EXPECT_EQ(info[0].grid[d], info[1].grid[d]);
    }
}

/* Programs compiled with a later version, whose options are longer. */
TEST(Options, OfAnotherSize)
{
    const System                          s    = small();
    const size_t                          more = 16;
    alignas(gmxfmm_options) unsigned char memory[sizeof(gmxfmm_options) + more + 1];
    memory[sizeof(memory) - 1]      = 77;
    gmxfmm_options* const options   = reinterpret_cast<gmxfmm_options*>(memory);
    gmxfmm_plan*          plan      = nullptr;
    char                  text[256] = "";
    gmxfmm_default_options_of_size(options, sizeof(gmxfmm_options) + more);
    EXPECT_EQ(options->size, sizeof(gmxfmm_options) + more);
    EXPECT_EQ(memory[sizeof(memory) - 1], 77); /* nothing is written behind them */
    EXPECT_EQ(gmxfmm_create(&plan, options, 20, s.box.data(), text, sizeof(text)), GMXFMM_OK) << text;
    gmxfmm_destroy(plan);
    memory[sizeof(gmxfmm_options) + more - 1] = 1;
    EXPECT_EQ(gmxfmm_create(&plan, options, 20, s.box.data(), text, sizeof(text)), GMXFMM_ERROR_OPTION);
    EXPECT_NE(std::string(text).find(GMXFMM_VERSION), std::string::npos) << text;
    /* of a structure that nobody filled */
    memset(memory, 0, sizeof(memory));
    EXPECT_EQ(gmxfmm_create(&plan, options, 20, s.box.data(), text, sizeof(text)), GMXFMM_ERROR_OPTION);
    EXPECT_NE(std::string(text).find("gmxfmm_default_options"), std::string::npos) << text;
}

/* A structure of a program that was compiled with a later version: what is behind this version's members. */
template <class Structure>
struct Later
{
    Structure    known;
    std::int64_t more[2];
};

template <class Structure>
Later<Structure> later()
{
    Later<Structure> s = {sized<Structure>(), {0, 0}};
    s.known.size       = sizeof(s);
    return s;
}

/* Sizes that none has: that of a structure that nobody filled, one that is cut off, and what happened to stand there.
 */
template <class Structure>
std::vector<size_t> wrongSizes()
{
    return {0, sizeof(size_t), sizeof(Structure) - 1, static_cast<size_t>(-1)};
}

class Sizes : public testing::Test
{
  protected:
    void expectSize(gmxfmm_status status, const std::string& type, const char* message)
    {
        EXPECT_EQ(status, GMXFMM_ERROR_OPTION) << type;
        EXPECT_NE(std::string(message).find("sizeof(" + type + ")"), std::string::npos) << message;
    }
    void expectUnknown(gmxfmm_status status, const std::string& type, const char* message)
    {
        EXPECT_EQ(status, GMXFMM_ERROR_OPTION) << type;
        EXPECT_NE(std::string(message).find(type), std::string::npos) << message;
        EXPECT_NE(std::string(message).find(GMXFMM_VERSION), std::string::npos) << message;
    }
    gmxfmm_system view() const
    {
        gmxfmm_system view = sized<gmxfmm_system>();
        view.n             = static_cast<std::int64_t>(system_.size());
        view.box           = system_.box.data();
        view.x             = system_.x.data();
        view.q             = system_.q.data();
        return view;
    }

    const System         system_    = small();
    const gmxfmm_options options_   = explicitOptions(4, 3, 3, 3, 1);
    char                 text_[256] = "";
};

TEST_F(Sizes, OfAnOutput)
{
    Plan                plan(system_, options_);
    std::vector<double> force(60);
    gmxfmm_output       output = sized<gmxfmm_output>();
    output.force               = force.data();
    for (const size_t size : wrongSizes<gmxfmm_output>())
    {
        output.size = size;
        expectSize(gmxfmm_execute(plan.get(), system_.x.data(), &output), "gmxfmm_output", gmxfmm_message(plan.get()));
    }
    EXPECT_EQ(force, std::vector<double>(60)) << "something was computed";
    auto another        = later<gmxfmm_output>();
    another.known.force = force.data();
    EXPECT_EQ(gmxfmm_execute(plan.get(), system_.x.data(), &another.known), GMXFMM_OK) << gmxfmm_message(plan.get());
    EXPECT_LT(relativeRms(force, plan.execute(system_.x).force), 1e-13);
    EXPECT_EQ(another.known.size, sizeof(another));
    another.more[1] = 1;
    expectUnknown(gmxfmm_execute(plan.get(), system_.x.data(), &another.known), "gmxfmm_output",
                  gmxfmm_message(plan.get()));
}

/* Nothing is asked of an info, and only what fits is written. */
TEST_F(Sizes, OfAnInfo)
{
    const Plan  plan(system_, options_);
    gmxfmm_info info = sized<gmxfmm_info>();
    for (const size_t size : wrongSizes<gmxfmm_info>())
    {
        info.size  = size;
        info.order = 77;
        EXPECT_EQ(gmxfmm_get_info(const_cast<Plan&>(plan).get(), &info), GMXFMM_ERROR_OPTION) << size;
        EXPECT_EQ(info.order, 77);
    }
    auto another    = later<gmxfmm_info>();
    another.more[0] = 5;
    EXPECT_EQ(gmxfmm_get_info(const_cast<Plan&>(plan).get(), &another.known), GMXFMM_OK);
    EXPECT_EQ(another.known.order, 4);
    EXPECT_EQ(another.known.size, sizeof(another));
    EXPECT_EQ(another.more[0], 5);
}

TEST_F(Sizes, OfASystem)
{
    gmxfmm_reference* reference = nullptr;
    gmxfmm_options    options   = defaultOptions();
    gmxfmm_system     s         = view();
    options.accuracy            = 1e-2;
    for (const size_t size : wrongSizes<gmxfmm_system>())
    {
        s.size = size;
        expectSize(gmxfmm_reference_create(&reference, &options, &s, text_, sizeof(text_)), "gmxfmm_system", text_);
        EXPECT_EQ(reference, nullptr);
        gmxfmm_reference_destroy(reference);
    }
    auto another       = later<gmxfmm_system>();
    another.known      = view();
    another.known.size = sizeof(another);
    EXPECT_EQ(gmxfmm_reference_create(&reference, &options, &another.known, text_, sizeof(text_)), GMXFMM_OK) << text_;
    gmxfmm_reference_destroy(reference);
    another.more[0] = 1;
    expectUnknown(gmxfmm_reference_create(&reference, &options, &another.known, text_, sizeof(text_)), "gmxfmm_system",
                  text_);
    gmxfmm_reference_destroy(reference);
}

TEST_F(Sizes, OfAMeasurement)
{
    gmxfmm_reference*   reference = nullptr;
    gmxfmm_options      options   = defaultOptions();
    const gmxfmm_system s         = view();
    gmxfmm_measurement  m         = sized<gmxfmm_measurement>(), tried[32];
    int                 num;
    options.accuracy = 1e-2;
    ASSERT_EQ(gmxfmm_reference_create(&reference, &options, &s, text_, sizeof(text_)), GMXFMM_OK) << text_;
    for (const size_t size : wrongSizes<gmxfmm_measurement>())
    {
        m.size = size;
        ASSERT_EQ(gmxfmm_measure(reference, &options, 0, &m, text_, sizeof(text_)), GMXFMM_ERROR_OPTION) << size;
        EXPECT_NE(std::string(text_).find("sizeof(gmxfmm_measurement)"), std::string::npos) << text_;
        expectSize(gmxfmm_choose(reference, &options, infinite, infinite, &m, nullptr, nullptr, text_, sizeof(text_)),
                   "gmxfmm_measurement", text_);
        /* the first of an array has the size of all */
        m             = sized<gmxfmm_measurement>();
        num           = 32;
        tried[0].size = size;
        expectSize(gmxfmm_choose(reference, &options, infinite, infinite, &m, tried, &num, text_, sizeof(text_)),
                   "gmxfmm_measurement", text_);
    }
    auto another    = later<gmxfmm_measurement>();
    another.more[0] = 5;
    EXPECT_EQ(gmxfmm_measure(reference, &options, 0, &another.known, text_, sizeof(text_)), GMXFMM_OK) << text_;
    EXPECT_GT(another.known.error, 0);
    EXPECT_EQ(another.known.size, sizeof(another));
    EXPECT_EQ(another.more[0], 5);
    /* those of a program with longer ones are as far apart as it has them */
    std::vector<Later<gmxfmm_measurement>> all(32, later<gmxfmm_measurement>());
    num = 32;
    ASSERT_EQ(gmxfmm_choose(reference, &options, infinite, infinite, &another.known, &all[0].known, &num, text_,
                            sizeof(text_)),
              GMXFMM_OK)
        << text_;
    ASSERT_GT(num, 1);
    for (int i = 0; i < num; i++)
    {
        EXPECT_GT(all[static_cast<size_t>(i)].known.error, 0);
        EXPECT_EQ(all[static_cast<size_t>(i)].known.size, sizeof(all[0]));
        EXPECT_EQ(all[static_cast<size_t>(i)].more[0], 0);
    }
    gmxfmm_reference_destroy(reference);
}

/* What there is room for in the options of a program that was compiled with an earlier version. */
TEST(Options, AreNotWrittenBehindTheirEnd)
{
    gmxfmm_options options;
    memset(&options, 0x55, sizeof(options));
    const gmxfmm_options before = options;
    const size_t         size   = offsetof(gmxfmm_options, prefactor);
    gmxfmm_default_options_of_size(&options, size);
    EXPECT_EQ(options.size, size);
    EXPECT_EQ(memcmp(&options.prefactor, &before.prefactor, sizeof(options) - size), 0);
}

/* The ends of a range are in it, the next numbers are not. */
TEST(Options, HaveTheRangesThatAreTold)
{
    const struct
    {
        const char* name;
        int gmxfmm_options::*member;
    } options[]    = {{"m2l_truncate", &gmxfmm_options::m2l_truncate},
                      {"separation", &gmxfmm_options::separation},
                      {"num_threads", &gmxfmm_options::num_threads},
                      {"reproducible", &gmxfmm_options::reproducible},
                      {"order", &gmxfmm_options::order},
                      {"device_id", &gmxfmm_options::device_id}};
    const System s = small();
    for (const auto& option : options)
    {
        const gmxfmm_option* told = gmxfmm_find_option(option.name);
        ASSERT_NE(told, nullptr) << option.name;
        const int lowest = static_cast<int>(told->lowest), highest = static_cast<int>(told->highest);
        for (const int value : {lowest, highest, highest + 1})
        {
            gmxfmm_options o    = depthOptions(GMXFMM_M2L_NAIVE, 3, 1, 1);
            gmxfmm_plan*   plan = nullptr;
            o.precision         = GMXFMM_DOUBLE;
            o.device            = GMXFMM_CPU; /* a GPU takes less */
            o.*option.member    = value;
            EXPECT_EQ(gmxfmm_create(&plan, &o, 20, s.box.data(), nullptr, 0),
                      value <= highest ? GMXFMM_OK : GMXFMM_ERROR_OPTION)
                << option.name << " = " << value;
            gmxfmm_destroy(plan);
        }
    }
    EXPECT_EQ(gmxfmm_find_option("none such"), nullptr);
}

TEST(RefusedCreate, WhatIsNotOfferedOnAGpu)
{
    const struct
    {
        gmxfmm_m2l m2l;
        int gmxfmm_options::*option;
        int                  value;
        const char*          named;
    } refused[]    = {{GMXFMM_M2L_ROTATION, &gmxfmm_options::m2l_to_parent, 1, "m2l_to_parent"},
                      {GMXFMM_M2L_ROTATION, &gmxfmm_options::m2l_truncate, 2, "m2l_truncate"},
                      {GMXFMM_M2L_SYMMETRIC, &gmxfmm_options::m2l_truncate, 1, "m2l_truncate"},
                      {GMXFMM_M2L_ROTATION, &gmxfmm_options::vertical_rotation, 1, "vertical_rotation"},
                      {GMXFMM_M2L_ROTATION, &gmxfmm_options::order, 25, "order 25"},
                      {GMXFMM_M2L_SYMMETRIC, &gmxfmm_options::order, 21, "order 21"}};
    const System s = small();
    /* a build without CUDA does not know what CUDA refuses: it refuses CUDA */
    const bool built = gmxfmm_check_device(GMXFMM_CUDA, 0, nullptr, 0) != GMXFMM_ERROR_UNSUPPORTED;
    for (const auto& r : refused)
    {
        gmxfmm_options options   = depthOptions(r.m2l, 6, 1, 1);
        gmxfmm_plan*   plan      = nullptr;
        char           text[256] = "";
        options.*r.option        = r.value;
        options.device           = GMXFMM_CUDA;
        expectRefused(options, 20, s.box.data(), GMXFMM_ERROR_UNSUPPORTED, built ? r.named : "no device support");
        options.device = GMXFMM_CPU;
        EXPECT_EQ(gmxfmm_create(&plan, &options, 20, s.box.data(), text, sizeof(text)), GMXFMM_OK) << text;
        gmxfmm_destroy(plan);
    }
}

/* Devices that share a step are of the FMM on GPUs; their numbers and shares are checked before any is looked for. */
TEST(RefusedCreate, DevicesThatCannotShareAStep)
{
    const System   s   = small();
    gmxfmm_options two = depthOptions(GMXFMM_M2L_NAIVE, 3, 1, 1);
    two.device         = GMXFMM_CUDA;
    two.num_devices    = 2;
    const std::pair<std::function<void(gmxfmm_options*)>, std::string> refused[] = {
        {[](gmxfmm_options* o) { o->device = GMXFMM_CPU; }, "device = cuda"},
        {[](gmxfmm_options* o) { o->devices[1] = -1; }, "devices[1] is -1"},
        {[](gmxfmm_options* o) { o->shares[1] = -0.5; }, "shares[1] is -0.5"},
        {[](gmxfmm_options* o) { o->far_shares[1] = -0.5; }, "far_shares[1] is -0.5"},
        {[](gmxfmm_options* o) { o->num_devices = GMXFMM_MAX_DEVICES + 1; }, "num_devices is 9"},
        {[](gmxfmm_options* o)
         {
             *o             = defaultOptions();
             o->method      = GMXFMM_TREECODE;
             o->boundary    = GMXFMM_OPEN;
             o->device      = GMXFMM_CUDA;
             o->num_devices = 2;
         },
         "num_devices belongs to the FMM"}};
    for (const auto& [change, named] : refused)
    {
        gmxfmm_options options = two;
        change(&options);
        expectRefused(options, 20, s.box.data(), GMXFMM_ERROR_OPTION, named);
    }
}

TEST_P(Errors, NullPointers)
{
    const std::vector<int> start(21, 0);
    gmxfmm_output          output = sized<gmxfmm_output>();
    gmxfmm_info            info   = sized<gmxfmm_info>();
    gmxfmm_plan*           p      = plan_.get();
    EXPECT_EQ(gmxfmm_set_box(p, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_enqueue_box(p, nullptr, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_set_charges(p, 20, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_set_exclusions(p, twoRows(7, 3).first.data(), nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_assign(p, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_execute(p, nullptr, &output), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_execute(p, system_.x.data(), nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_get_info(p, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_set_box(nullptr, system_.box.data()), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_enqueue_box(nullptr, system_.box.data(), nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_set_charges(nullptr, 20, system_.q.data()), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_set_exclusions(nullptr, start.data(), start.data()), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_assign(nullptr, system_.x.data()), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_execute(nullptr, system_.x.data(), &output), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_get_info(nullptr, &info), GMXFMM_ERROR_NULL);
    gmxfmm_destroy(nullptr);
    expectWorksAsBefore();
}

TEST_P(Errors, ChargesThatAreNotFinite)
{
    expect(setCharges(spoilt(system_.q, 13, notANumber)), GMXFMM_ERROR_CHARGE, "13");
    expect(setCharges(spoilt(system_.q, 7, infinite)), GMXFMM_ERROR_CHARGE, "7");
    expectWorksAsBefore();
}

/* Many are read by several threads: the first bad one is named whatever their number. */
TEST(RefusedCharges, AreTheFirstWithAnyNumberOfThreads)
{
    const int           n = 30000;
    std::vector<double> q(n, 1);
    std::vector<float>  floats(n, 1);
    q[17003] = q[29000] = floats[17003] = floats[29000] = std::numeric_limits<float>::infinity();
    for (gmxfmm_precision type : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        for (int threads : {1, 2, 5})
        {
            const void*    given   = type == GMXFMM_DOUBLE ? static_cast<void*>(q.data()) : floats.data();
            gmxfmm_options options = defaultOptions();
            options.boundary       = GMXFMM_OPEN;
            options.order          = 4;
            options.num_threads    = threads;
            options.array_type     = type;
            gmxfmm_plan* plan      = createOrSkip(options, n, nullptr);
            EXPECT_EQ(gmxfmm_set_charges(plan, n, given), GMXFMM_ERROR_CHARGE);
            EXPECT_NE(std::string(gmxfmm_message(plan)).find(" 17003 "), std::string::npos) << gmxfmm_message(plan);
            gmxfmm_destroy(plan);
        }
    }
}

TEST_P(Errors, NegativeNumberOfCharges)
{
    expect(gmxfmm_set_charges(plan_.get(), -3, system_.q.data()), GMXFMM_ERROR_OPTION, "-3");
    expectWorksAsBefore();
}

TEST_P(Errors, PositionsThatAreNotFiniteInAssign)
{
    gmxfmm_output output = sized<gmxfmm_output>();
    output.want_energy   = 1;
    plan_.assign(system_.x);
    expect(gmxfmm_assign(plan_.get(), spoilt(system_.x, 3 * 11 + 1, notANumber).data()), GMXFMM_ERROR_POSITION, "11");
    /* the assignment before is not used with what the new one has begun */
    expect(gmxfmm_execute(plan_.get(), system_.x.data(), &output), GMXFMM_ERROR_ORDER, "assign");
    expect(gmxfmm_assign(plan_.get(), spoilt(system_.x, 3 * 19 + 2, -infinite).data()), GMXFMM_ERROR_POSITION, "19");
    expectWorksAsBefore();
}

TEST_P(Errors, PositionsThatAreNotFiniteInExecute)
{
    std::vector<double> force(60);
    gmxfmm_output       output = sized<gmxfmm_output>();
    output.force               = force.data();
    expect(gmxfmm_execute(plan_.get(), spoilt(system_.x, 3 * 11 + 1, notANumber).data(), &output),
           GMXFMM_ERROR_POSITION, "");
    expect(gmxfmm_execute(plan_.get(), spoilt(system_.x, 3 * 19, infinite).data(), &output), GMXFMM_ERROR_POSITION, "");
    for (const double far : {1e300, -1e300, 1e15, -1e12}) /* more cells away than there are numbers: as in assign */
    {
        expect(gmxfmm_execute(plan_.get(), spoilt(system_.x, 3 * 7 + 1, far).data(), &output), GMXFMM_ERROR_POSITION,
               "too far away");
        expect(gmxfmm_assign(plan_.get(), spoilt(system_.x, 3 * 7 + 1, far).data()), GMXFMM_ERROR_POSITION, "7");
        plan_.assign(system_.x);
    }
    output             = sized<gmxfmm_output>();
    output.want_energy = 1;
    expect(gmxfmm_execute(plan_.get(), spoilt(system_.x, 3 * 4, notANumber).data(), &output), GMXFMM_ERROR_POSITION,
           "");
    expectWorksAsBefore();
}

TEST_P(Errors, ChargesAtOnePlace)
{
    std::vector<double> x = system_.x, force(60);
    std::copy(&x[3 * 6], &x[3 * 6] + 3, &x[3 * 12]);
    gmxfmm_output output = sized<gmxfmm_output>();
    output.force         = force.data();
    output.want_energy   = 1;
    plan_.assign(x);
    expect(gmxfmm_execute(plan_.get(), x.data(), &output), GMXFMM_ERROR_COINCIDENT, "");
    expectWorksAsBefore();
    /* excluded from each other they may: the pair is never computed */
    System together = system_;
    together.exclude(6, 12);
    plan_.setExclusions(together);
    plan_.assign(x);
    EXPECT_EQ(gmxfmm_execute(plan_.get(), x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan_.get());
    for (double f : force)
    {
        EXPECT_TRUE(std::isfinite(f));
    }
}

TEST_P(Errors, ExclusionOutOfRange)
{
    for (int bad : {20, -1, 1000000})
    {
        const auto rows = twoRows(bad, 3);
        expect(gmxfmm_set_exclusions(plan_.get(), rows.first.data(), rows.second.data()), GMXFMM_ERROR_EXCLUSION,
               std::to_string(bad));
    }
    expectWorksAsBefore();
}

TEST_P(Errors, ExclusionOfOneDirection)
{
    const auto rows = twoRows(7, 4); /* 3 excludes 7, but 7 excludes 4 */
    expect(gmxfmm_set_exclusions(plan_.get(), rows.first.data(), rows.second.data()), GMXFMM_ERROR_EXCLUSION, "7");
    expectWorksAsBefore();
}

TEST_P(Errors, ExclusionRowsThatRunBackwards)
{
    auto rows     = twoRows(7, 3);
    rows.first[5] = 0;
    expect(gmxfmm_set_exclusions(plan_.get(), rows.first.data(), rows.second.data()), GMXFMM_ERROR_EXCLUSION, "");
    rows          = twoRows(7, 3);
    rows.first[5] = 1000000; /* the list has two elements: none beyond is looked at */
    expect(gmxfmm_set_exclusions(plan_.get(), rows.first.data(), rows.second.data()), GMXFMM_ERROR_EXCLUSION, "5");
    rows          = twoRows(7, 3);
    rows.first[0] = -1;
    expect(gmxfmm_set_exclusions(plan_.get(), rows.first.data(), rows.second.data()), GMXFMM_ERROR_EXCLUSION, "");
    expectWorksAsBefore();
}

/* Long lists are looked through in another way than short ones: any order and pairs given twice are allowed there, too.
 */
TEST_P(Errors, ExclusionsInLongLists)
{
    std::vector<int> start = {0}, ascending, descending, twice, twiceStart = {0};
    for (int i = 0; i < 20; i++)
    {
        for (int j = 0; j < 20; j++)
        {
            ascending.push_back(j);
            descending.push_back(19 - j);
            twice.insert(twice.end(), {j, i == 5 ? j : i});
        }
        start.push_back(20 * (i + 1));
        twiceStart.push_back(40 * (i + 1));
    }
    EXPECT_EQ(gmxfmm_set_exclusions(plan_.get(), start.data(), ascending.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_exclusions(plan_.get(), start.data(), descending.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_exclusions(plan_.get(), twiceStart.data(), twice.data()), GMXFMM_OK);
    for (auto* list : {&ascending, &descending})
    {
        /* particle 5 has itself in place of particle 11, which excludes it */
        std::replace(list->begin() + 5 * 20, list->begin() + 6 * 20, 11, 5);
        expect(gmxfmm_set_exclusions(plan_.get(), start.data(), list->data()), GMXFMM_ERROR_EXCLUSION,
               "particle 11 excludes particle 5, but not");
    }
    EXPECT_EQ(gmxfmm_set_exclusions(plan_.get(), nullptr, nullptr), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_assign(plan_.get(), system_.x.data()), GMXFMM_OK);
    expectWorksAsBefore();
}

/* The good case of the same rows, so that the tests above fail for the right reason. */
TEST_P(Errors, ExclusionOfBothDirectionsIsAccepted)
{
    const auto rows = twoRows(7, 3);
    EXPECT_EQ(gmxfmm_set_exclusions(plan_.get(), rows.first.data(), rows.second.data()), GMXFMM_OK);
}

/* Targets that are set are not charges: no pairs are excluded for them, and no force acts on them. */
TEST_P(Errors, ExclusionsWithTargets)
{
    const auto rows = twoRows(7, 3);
    ASSERT_EQ(gmxfmm_set_exclusions(plan_.get(), rows.first.data(), rows.second.data()), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_set_targets(plan_.get(), 5, system_.x.data()), GMXFMM_OK);
    expect(gmxfmm_assign(plan_.get(), system_.x.data()), GMXFMM_ERROR_OPTION, "exclusions");
    ASSERT_EQ(gmxfmm_set_exclusions(plan_.get(), nullptr, nullptr), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_assign(plan_.get(), system_.x.data()), GMXFMM_OK) << gmxfmm_message(plan_.get());
    ASSERT_EQ(gmxfmm_set_targets(plan_.get(), 0, nullptr), GMXFMM_OK);
    expectWorksAsBefore();
}

TEST_P(Errors, ForcesEnergiesAndVirialWithTargets)
{
    const std::vector<double> places = {0.1, 0.2, 0.3, 1.1, 0.2, 0.7};
    std::vector<double>       force(60), potential(2);
    ASSERT_EQ(gmxfmm_set_targets(plan_.get(), 2, places.data()), GMXFMM_OK);
    gmxfmm_output output = sized<gmxfmm_output>();
    output.potential     = potential.data();
    EXPECT_EQ(gmxfmm_execute(plan_.get(), system_.x.data(), &output), GMXFMM_ERROR_ORDER); /* they need an assign */
    plan_.assign(system_.x);
    EXPECT_EQ(gmxfmm_execute(plan_.get(), system_.x.data(), &output), GMXFMM_OK);
    output.force = force.data();
    expect(gmxfmm_execute(plan_.get(), system_.x.data(), &output), GMXFMM_ERROR_OPTION, "targets");
    output.force       = nullptr;
    output.want_energy = 1;
    expect(gmxfmm_execute(plan_.get(), system_.x.data(), &output), GMXFMM_ERROR_OPTION, "targets");
    output.want_energy = 0;
    output.want_virial = 1;
    expect(gmxfmm_execute(plan_.get(), system_.x.data(), &output), GMXFMM_ERROR_OPTION, "targets");
    ASSERT_EQ(gmxfmm_set_targets(plan_.get(), 0, nullptr), GMXFMM_OK);
    expectWorksAsBefore();
}

TEST_P(Errors, Targets)
{
    std::vector<double> places = {0.1, 0.2, 0.3, 1.1, 0.2, 0.7}, potential(2);
    gmxfmm_output       output = sized<gmxfmm_output>();
    output.potential           = potential.data();
    EXPECT_EQ(gmxfmm_set_targets(nullptr, 2, places.data()), GMXFMM_ERROR_NULL);
    expect(gmxfmm_set_targets(plan_.get(), 2, nullptr), GMXFMM_ERROR_NULL, "");
    expect(gmxfmm_set_targets(plan_.get(), -2, places.data()), GMXFMM_ERROR_OPTION, "-2");
    places[4] = notANumber;
    ASSERT_EQ(gmxfmm_set_targets(plan_.get(), 2, places.data()), GMXFMM_OK);
    expect(gmxfmm_assign(plan_.get(), system_.x.data()), GMXFMM_ERROR_POSITION, "target 1");
    /* on top of a charge */
    std::copy(&system_.x[3 * 6], &system_.x[3 * 6] + 3, &places[3]);
    ASSERT_EQ(gmxfmm_set_targets(plan_.get(), 2, places.data()), GMXFMM_OK);
    plan_.assign(system_.x);
    expect(gmxfmm_execute(plan_.get(), system_.x.data(), &output), GMXFMM_ERROR_COINCIDENT, "target 1");
    ASSERT_EQ(gmxfmm_set_targets(plan_.get(), 0, nullptr), GMXFMM_OK);
    expectWorksAsBefore();
}

INSTANTIATE_TEST_SUITE_P(Methods, Errors, testing::ValuesIn(methods()), methodName);

TEST(RefusedOrder, OfCalls)
{
    const System         s       = small();
    const gmxfmm_options options = defaultOptions();
    gmxfmm_plan*         plan    = nullptr;
    gmxfmm_output        output  = sized<gmxfmm_output>();
    output.want_energy           = 1;
    const std::vector<int> start(21, 0), list(1, 0);
    ASSERT_EQ(gmxfmm_create(&plan, &options, 20, s.box.data(), nullptr, 0), GMXFMM_OK);
    EXPECT_STREQ(gmxfmm_message(plan), "");
    EXPECT_EQ(gmxfmm_execute(plan, s.x.data(), &output), GMXFMM_ERROR_ORDER);
    EXPECT_NE(std::string(gmxfmm_message(plan)), "");
    EXPECT_EQ(gmxfmm_assign(plan, s.x.data()), GMXFMM_ERROR_ORDER);
    EXPECT_EQ(gmxfmm_set_exclusions(plan, start.data(), list.data()), GMXFMM_ERROR_ORDER);
    ASSERT_EQ(gmxfmm_set_charges(plan, 20, s.q.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_execute(plan, s.x.data(), &output), GMXFMM_ERROR_ORDER);
    ASSERT_EQ(gmxfmm_assign(plan, s.x.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_execute(plan, s.x.data(), &output), GMXFMM_OK);
    /* another number of particles takes the assignment away */
    ASSERT_EQ(gmxfmm_set_charges(plan, 19, s.q.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_execute(plan, s.x.data(), &output), GMXFMM_ERROR_ORDER);
    gmxfmm_destroy(plan);
}

TEST(Nothing, IsTakenForNothing)
{
    gmxfmm_default_options(nullptr);
    gmxfmm_default_options_of_size(nullptr, 0);
    EXPECT_EQ(gmxfmm_find_option(nullptr), nullptr);
    EXPECT_TRUE(std::isnan(gmxfmm_reference_uncertainty(nullptr)));
}

/* OpenMP's threads do not come along into a child. A plan of one thread works there, others are refused; neither waits.
 */
TEST(AChildAfterFork, WorksOrGetsAnError)
{
    const System   s       = small();
    gmxfmm_options options = defaultOptions();
    options.device         = GMXFMM_CPU;
    options.num_threads    = 2;
    Plan         parents(s, options);
    const Result expected = parents.execute(s.x);
    const pid_t  child    = fork();
    ASSERT_GE(child, 0);
    if (child == 0)
    {
        alarm(60);
        int           wrong = 0;
        char          text[256];
        gmxfmm_plan*  plan   = nullptr;
        gmxfmm_output output = sized<gmxfmm_output>();
        output.want_energy   = 1;
        wrong += gmxfmm_create(&plan, &options, 20, s.box.data(), text, sizeof(text)) != GMXFMM_ERROR_OPTION;
        wrong += 2 * (std::strstr(text, "fork") == nullptr);
        wrong += 4 * (gmxfmm_assign(parents.get(), s.x.data()) != GMXFMM_ERROR_OPTION);
        wrong += 8 * (gmxfmm_execute(parents.get(), s.x.data(), &output) != GMXFMM_ERROR_OPTION);
        options.num_threads = GMXFMM_AUTO;
        gmxfmm_create(&plan, &options, 20, s.box.data(), nullptr, 0);
        gmxfmm_set_charges(plan, 20, s.q.data());
        gmxfmm_assign(plan, s.x.data());
        wrong += 16 * (gmxfmm_execute(plan, s.x.data(), &output) != GMXFMM_OK);
        const double energy = output.energy_near + output.energy_far;
        wrong += 32 * !(std::fabs(energy - expected.energy) <= 1e-12 * std::fabs(expected.energy)); /* other sums */
        _exit(wrong);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "the child was ended by signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(parents.execute(s.x).energy, expected.energy);
}

TEST(Texts, AreThereForEveryStatusAndMethod)
{
    for (int status = -1; status <= GMXFMM_NUM_STATUS; status++)
    {
        const std::string text = gmxfmm_status_text(static_cast<gmxfmm_status>(status));
        EXPECT_NE(text, "") << status;
        EXPECT_EQ(text.find('\n'), std::string::npos);
    }
    const char* names[] = {"auto", "fft", "rotation", "symmetric", "dynamic", "naive"};
    for (int m2l = 0; m2l < 6; m2l++)
    {
        EXPECT_STREQ(gmxfmm_m2l_name(static_cast<gmxfmm_m2l>(m2l)), names[m2l]);
    }
}
