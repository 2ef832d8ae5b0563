/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The library's plan for tests: calls that must succeed, and one that does everything. */
#ifndef GMXFMM_TESTS_PLAN_H
#define GMXFMM_TESTS_PLAN_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gmxfmm_measure.h"
#include "support/sized.h"
#include "support/system.h"

namespace fmmtest
{

gmxfmm_options defaultOptions();

/* FFT path with everything chosen by hand. */
gmxfmm_options
explicitOptions(int order, int nx, int ny, int nz, int separation, gmxfmm_precision precision = GMXFMM_DOUBLE);

gmxfmm_options
explicitOptions(int order, const std::array<int, 3>& cells, int separation, gmxfmm_precision precision = GMXFMM_DOUBLE);

/* Asked accuracy, the rest automatic. */
gmxfmm_options askedOptions(double accuracy, gmxfmm_precision precision = GMXFMM_DOUBLE);

struct Result : Solution
{
    double      energyNear = 0;
    double      energyFar  = 0;
    gmxfmm_info info       = sized<gmxfmm_info>();
};

/* A plan; std::runtime_error with the library's message if there is none. What the library does not offer on a GPU
 * (GMXFMM_ERROR_UNSUPPORTED there, while the CPU takes the same options) ends the test that asked as skipped, with the
 * library's message: suites of all options run there, too. */
gmxfmm_plan* createOrSkip(const gmxfmm_options& options, std::int64_t n, const double* box);

/* A system as the library's measurements take it, its exclusions, too; it points to the system. */
class SystemView
{
  public:
    SystemView(const System& system, Boundary boundary);

    /* As long as this lives. */
    gmxfmm_system get() const;

  private:
    gmxfmm_system    view_;
    std::vector<int> start_ = {0}, list_;
};

/* A failing call throws std::runtime_error with the library's message, which fails the test. */
class Plan
{
  public:
    /* create (createOrSkip), set_charges, set_exclusions and assign; with options.array_type = SINGLE charges and
     * positions are rounded, and steps are put on streams only: execute and energy are for arrays of double. */
    Plan(const System& system, const gmxfmm_options& options);
    /* One that was made for a system, with arrays of double. */
    Plan(const System& system, gmxfmm_plan* made);
    ~Plan();
    Plan(const Plan&)            = delete;
    Plan& operator=(const Plan&) = delete;

    void        assign(const std::vector<double>& x);
    void        setBox(const Mat3& box);
    void        setExclusions(const System& system);
    Result      execute(const std::vector<double>& x);
    double      energy(const std::vector<double>& x);
    gmxfmm_info info() const;

    gmxfmm_plan* get()
    {
        return plan_;
    }

  private:
    void check(gmxfmm_status status) const;
    /* v as the plan takes it, in *floats if that is not double. */
    const void* array(const std::vector<double>& v, std::vector<float>* floats) const;

    gmxfmm_plan*     plan_ = nullptr;
    std::size_t      n_    = 0;
    gmxfmm_precision type_ = GMXFMM_DOUBLE;
};

Result solve(const System& system, const gmxfmm_options& options);

struct Values
{
    std::vector<double> potential, field;
};

/* A step that gives these alone, at the targets if there are any, num of them. */
Values valuesOf(gmxfmm_plan* plan, const std::vector<double>& x, std::size_t num);

/* The same at these targets, after an assignment. */
Values valuesAt(gmxfmm_plan* plan, const std::vector<double>& x, const std::vector<double>& places);

/* A step that gives forces alone. */
std::vector<double> forcesOf(gmxfmm_plan* plan, const std::vector<double>& x);

/* The plan's message has this word. */
void expectMessage(const gmxfmm_plan* plan, const std::string& word);

/* gmxfmm_create refuses this, with a message of one line that has the word. */
void expectRefused(
    const gmxfmm_options& options, std::int64_t n, const double* box, gmxfmm_status status, const std::string& word);

/* The library's word for a boundary. */
gmxfmm_options withBoundary(gmxfmm_options options, Boundary boundary);

} // namespace fmmtest

#endif
