/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "support/plan.h"

#include <cstdlib>
#include <stdexcept>

#include <gtest/gtest.h>

#include "support/cache_folder.h"
#include "support/cuda.h"

namespace fmmtest
{

gmxfmm_options defaultOptions()
{
    gmxfmm_options options;
    gmxfmm_default_options(&options);
    /* the same suites for a device: every case that does not say otherwise then computes there */
    const char* device = std::getenv("GMXFMM_TESTS_DEVICE");
    options.device     = device != nullptr && std::string(device) == "cuda" ? GMXFMM_CUDA : GMXFMM_CPU;
    options.cache_dir  = cacheFolder();
    return options;
}

gmxfmm_options explicitOptions(int order, int nx, int ny, int nz, int separation, gmxfmm_precision precision)
{
    gmxfmm_options options = defaultOptions();
    options.order          = order;
    options.grid[0]        = nx;
    options.grid[1]        = ny;
    options.grid[2]        = nz;
    options.separation     = separation;
    options.m2l            = GMXFMM_M2L_FFT;
    options.precision      = precision;
    return options;
}

gmxfmm_options explicitOptions(int order, const std::array<int, 3>& cells, int separation, gmxfmm_precision precision)
{
    return explicitOptions(order, cells[0], cells[1], cells[2], separation, precision);
}

gmxfmm_options askedOptions(double accuracy, gmxfmm_precision precision)
{
    gmxfmm_options options = defaultOptions();
    options.accuracy       = accuracy;
    options.precision      = precision;
    return options;
}

gmxfmm_options withBoundary(gmxfmm_options options, Boundary boundary)
{
    options.boundary = boundary == Boundary::Open     ? GMXFMM_OPEN
                       : boundary == Boundary::Vacuum ? GMXFMM_VACUUM
                                                      : GMXFMM_TINFOIL;
    return options;
}

/* Whether the CPU takes what a GPU refuses: then the refusal is of what is not offered there. m2l = dynamic is for GPUs
 * alone. */
static bool cpuTakes(gmxfmm_options options, std::int64_t n, const double* box)
{
    gmxfmm_plan* plan = nullptr;
    options.device    = GMXFMM_CPU;
    const bool takes  = gmxfmm_create(&plan, &options, n, box, nullptr, 0) == GMXFMM_OK;
    gmxfmm_destroy(plan);
    return takes;
}

static void skip(const std::string& message)
{
    GTEST_SKIP() << message;
}

gmxfmm_plan* createOrSkip(const gmxfmm_options& options, std::int64_t n, const double* box)
{
    char                message[512] = "";
    gmxfmm_plan*        plan         = nullptr;
    const gmxfmm_status status       = gmxfmm_create(&plan, &options, n, box, message, sizeof(message));
    if (status == GMXFMM_ERROR_UNSUPPORTED && options.device == GMXFMM_CUDA && haveCuda() && cpuTakes(options, n, box))
    {
        skip(message);
        throw testing::AssertionException(
            testing::TestPartResult(testing::TestPartResult::kSkip, __FILE__, __LINE__, message));
    }
    if (status != GMXFMM_OK)
    {
        throw std::runtime_error(std::string("gmxfmm_create: ") + message);
    }
    return plan;
}

SystemView::SystemView(const System& s, Boundary boundary) : view_(sized<gmxfmm_system>())
{
    view_.n   = static_cast<std::int64_t>(s.size());
    view_.box = boundary == Boundary::Open ? nullptr : s.box.data();
    view_.x   = s.x.data();
    view_.q   = s.q.data();
    for (std::size_t i = 0; i < s.size() && !s.excluded.empty(); i++)
    {
        if (i < s.excluded.size())
        {
            list_.insert(list_.end(), s.excluded[i].begin(), s.excluded[i].end());
        }
        start_.push_back(static_cast<int>(list_.size()));
    }
}

gmxfmm_system SystemView::get() const
{
    gmxfmm_system view = view_;
    view.excl_start    = start_.size() > 1 ? start_.data() : nullptr;
    view.excl_list     = start_.size() > 1 ? list_.data() : nullptr;
    return view;
}

Plan::Plan(const System& system, gmxfmm_plan* made) : plan_(made), n_(system.size())
{
}

Plan::Plan(const System& system, const gmxfmm_options& options) : n_(system.size()), type_(options.array_type)
{
    plan_ = createOrSkip(options, static_cast<std::int64_t>(n_),
                         options.boundary == GMXFMM_OPEN ? nullptr : system.box.data());
    try
    {
        std::vector<float> floats;
        check(gmxfmm_set_charges(plan_, static_cast<std::int64_t>(n_), array(system.q, &floats)));
        setExclusions(system);
        assign(system.x);
    }
    catch (...)
    {
        gmxfmm_destroy(plan_);
        throw;
    }
}

Plan::~Plan()
{
    gmxfmm_destroy(plan_);
}

void Plan::check(gmxfmm_status status) const
{
    if (status != GMXFMM_OK)
    {
        throw std::runtime_error(std::string(gmxfmm_status_text(status)) + ": " + gmxfmm_message(plan_));
    }
}

const void* Plan::array(const std::vector<double>& v, std::vector<float>* floats) const
{
    if (type_ == GMXFMM_DOUBLE)
    {
        return v.data();
    }
    floats->assign(v.begin(), v.end());
    return floats->data();
}

void Plan::assign(const std::vector<double>& x)
{
    std::vector<float> floats;
    check(gmxfmm_assign(plan_, array(x, &floats)));
}

void Plan::setBox(const Mat3& box)
{
    check(gmxfmm_set_box(plan_, box.data()));
}

void Plan::setExclusions(const System& system)
{
    if (system.excluded.empty())
    {
        return;
    }
    const SystemView    view(system, Boundary::Open);
    const gmxfmm_system lists = view.get();
    check(gmxfmm_set_exclusions(plan_, lists.excl_start, lists.excl_list));
}

Result Plan::execute(const std::vector<double>& x)
{
    Result        result;
    gmxfmm_output output           = sized<gmxfmm_output>();
    static_cast<Solution&>(result) = emptySolution(n_);
    output.potential               = result.potential.data();
    output.field                   = result.field.data();
    output.force                   = result.force.data();
    output.want_energy             = 1;
    output.want_virial             = 1;
    check(gmxfmm_execute(plan_, x.data(), &output));
    result.energyNear = output.energy_near;
    result.energyFar  = output.energy_far;
    result.energy     = output.energy_near + output.energy_far;
    std::copy(output.virial, output.virial + 9, result.virial.begin());
    result.info = info();
    return result;
}

double Plan::energy(const std::vector<double>& x)
{
    gmxfmm_output output = sized<gmxfmm_output>();
    output.want_energy   = 1;
    check(gmxfmm_execute(plan_, x.data(), &output));
    return output.energy_near + output.energy_far;
}

gmxfmm_info Plan::info() const
{
    gmxfmm_info info = sized<gmxfmm_info>();
    check(gmxfmm_get_info(plan_, &info));
    return info;
}

Result solve(const System& system, const gmxfmm_options& options)
{
    Plan plan(system, options);
    return plan.execute(system.x);
}

Values valuesOf(gmxfmm_plan* plan, const std::vector<double>& x, std::size_t num)
{
    Values        v      = {std::vector<double>(num), std::vector<double>(3 * num)};
    gmxfmm_output output = sized<gmxfmm_output>();
    output.potential     = v.potential.data();
    output.field         = v.field.data();
    EXPECT_EQ(gmxfmm_execute(plan, x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan);
    return v;
}

Values valuesAt(gmxfmm_plan* plan, const std::vector<double>& x, const std::vector<double>& places)
{
    const std::size_t num = places.size() / 3;
    EXPECT_EQ(gmxfmm_set_targets(plan, static_cast<std::int64_t>(num), places.data()), GMXFMM_OK)
        << gmxfmm_message(plan);
    EXPECT_EQ(gmxfmm_assign(plan, x.data()), GMXFMM_OK) << gmxfmm_message(plan);
    return valuesOf(plan, x, num);
}

std::vector<double> forcesOf(gmxfmm_plan* plan, const std::vector<double>& x)
{
    std::vector<double> force(x.size());
    gmxfmm_output       output = sized<gmxfmm_output>();
    output.force               = force.data();
    EXPECT_EQ(gmxfmm_execute(plan, x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan);
    return force;
}

void expectMessage(const gmxfmm_plan* plan, const std::string& word)
{
    EXPECT_NE(std::string(gmxfmm_message(plan)).find(word), std::string::npos) << gmxfmm_message(plan);
}

void expectRefused(
    const gmxfmm_options& options, std::int64_t n, const double* box, gmxfmm_status status, const std::string& word)
{
    gmxfmm_plan*        plan      = reinterpret_cast<gmxfmm_plan*>(&plan); /* anything but NULL */
    char                text[512] = "";
    const gmxfmm_status got       = gmxfmm_create(&plan, &options, n, box, text, sizeof(text));
    const std::string   message   = text;
    EXPECT_EQ(got, status) << gmxfmm_status_text(got) << ": " << message;
    EXPECT_EQ(plan, nullptr);
    EXPECT_NE(message, "");
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_NE(message.find(word), std::string::npos) << message;
    if (got == GMXFMM_OK)
    {
        gmxfmm_destroy(plan);
    }
}

} // namespace fmmtest
