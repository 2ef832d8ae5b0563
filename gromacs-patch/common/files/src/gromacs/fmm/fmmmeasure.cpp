/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the measurement of FMM force errors on the simulated system
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmmeasure.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "gromacs/math/units.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/real.h"
#include "gromacs/utility/stringutil.h"

#include "fmmcoincidence.h"
#include "fmmplan.h"
#include "fmmslab.h"
#include "fmmsystem.h"

namespace gmx
{

namespace
{

//! Frees a reference
struct ReferenceDeleter
{
    void operator()(gmxfmm_reference* reference) const { gmxfmm_reference_destroy(reference); }
};

/*! \brief Returns coordinates that atoms may have had when they were assigned to cells
 *
 * Expansions converge more slowly for atoms that have left their cell. In
 * 0.05 ps, after which they are assigned again at the latest, atoms of liquids
 * move by some 0.02 nm in each direction.
 */
std::vector<real> coordinatesBefore(ArrayRef<const RVec> x)
{
    constexpr double  c_moved = 0.02; // nm
    std::vector<real> before;
    std::mt19937      random(2022);
    constexpr double  c_mean = 0.5 * 3, c_deviation = 0.5; // of the sum of three numbers in 0..1
    before.reserve(DIM * x.size());
    for (const RVec& ofAtom : x)
    {
        for (int d = 0; d < DIM; d++)
        {
            double sum = 0;
            for (int i = 0; i < 3; i++)
            {
                sum += random() / static_cast<double>(std::mt19937::max());
            }
            before.push_back(ofAtom[d] + c_moved * (sum - c_mean) / c_deviation);
        }
    }
    return before;
}

//! Returns the volume that a pressure is of; zero in open systems, which have none
double volumeOfPressure(const double* box, int numAtoms)
{
    if (box == nullptr)
    {
        return 0;
    }
    return hasVolume(box) ? box[0] * box[4] * box[8] : volumeOfFilm(numAtoms);
}

/*! \brief Returns by how much an element of the virial may be wrong
 *
 * At the default accuracy this is 1 bar in the pressure. (PME with a force
 * error of 7e-4 is 3 bar off in water.) In small systems, whose pressure is
 * worse than that of large ones, and in films, whose forces alone would be
 * less exact than those of a box, it also keeps the energy from wandering. No
 * more than single precision allows is asked for.
 */
double allowedVirialError(double volume, double accuracy)
{
    constexpr double c_perAccuracy = 2500, c_least = 0.2; // bar
    if (volume == 0)
    {
        return std::numeric_limits<double>::infinity(); // there is no pressure
    }
    const double pressure = std::max(c_least, c_perAccuracy * accuracy);
    return 0.5 * volume * pressure / c_presfac;
}

//! Returns the parameters of a measurement, and what came of them, as a line
std::string tableLine(const gmxfmm_measurement& m, double volume)
{
    const std::string cells = formatString("%d x %d x %d", m.grid[0], m.grid[1], m.grid[2]);
    const std::string pressure =
            volume > 0 ? formatString("%10.2f", 2 * c_presfac * m.virial_error / volume) : "";
    return formatString("%10s %6d %16s %11d %10.1e %10.1e %10.1e %10.1e%s %9.2f\n",
                        gmxfmm_m2l_name(m.m2l),
                        m.order,
                        cells.c_str(),
                        m.separation,
                        m.predicted_error,
                        m.error,
                        m.error_anywhere,
                        m.error_moved,
                        pressure.c_str(),
                        1e3 * m.time);
}

//! Returns what is above the lines: \p uncertainty of the errors, and their unit where forces are zero
std::string tableHead(double uncertainty, double unit, bool havePressure)
{
    return formatString(
            "FMM: force errors measured, to %.0e, when atoms are assigned to cells and when they "
            "have\n"
            "     moved since%s\n%s\n"
            "    method  order            cells  separation   expected   measured   anywhere      "
            "moved%s ms "
            "a step\n",
            uncertainty,
            havePressure ? ", and the worst of an element of the pressure" : "",
            unit > 0
                    ? formatString("     (forces are zero but for rounding: errors are relative to "
                                   "%.3g kJ/mol/nm, the\n"
                                   "     mean charge squared over the spacing squared)\n",
                                   unit)
                              .c_str()
                    : "",
            havePressure ? "       bar" : "");
}

} // namespace

FmmMeasuredError measureFmmError(const gmx_mtop_t&    mtop,
                                 ArrayRef<const RVec> x,
                                 const double*        box,
                                 double               lambda,
                                 bool                 choose,
                                 gmxfmm_options*      options,
                                 gmxfmm_plan*         inUse)
{
    const std::vector<real> charges    = fmmCharges(mtop, lambda);
    const FmmExclusionLists exclusions = fmmExclusionLists(fmmExclusions(mtop), mtop.natoms);
    const std::vector<real> before     = coordinatesBefore(x);
    const double            volume     = volumeOfPressure(box, mtop.natoms);
    gmxfmm_system           system     = {};
    system.size                        = sizeof(system);
    system.n                           = mtop.natoms;
    system.box                         = box;
    system.x                           = x.data();
    system.q                           = charges.data();
    system.x_before                    = before.data();
    system.excl_start                  = exclusions.start.data();
    system.excl_list                   = exclusions.list.data();
    std::array<char, 1024> message     = { { '\0' } };
    FmmMeasuredError       result;

    gmxfmm_reference* made = nullptr;
    gmxfmm_status     status =
            gmxfmm_reference_create(&made, options, &system, message.data(), message.size());
    const std::unique_ptr<gmxfmm_reference, ReferenceDeleter> reference(made);
    if (status != GMXFMM_OK)
    {
        const bool isSystemAtFault = status == GMXFMM_ERROR_COINCIDENT || status == GMXFMM_ERROR_POSITION
                                     || status == GMXFMM_ERROR_CHARGE;
        result.status  = isSystemAtFault ? FmmMeasurementStatus::NotComputable
                                         : FmmMeasurementStatus::NotMeasured;
        result.message = status == GMXFMM_ERROR_COINCIDENT
                                 ? fmmAtomsAtOnePlace(message.data(), mtop, x, box)
                                 : message.data();
        return result;
    }

    gmxfmm_measurement chosen = {};
    chosen.size               = sizeof(chosen);
    std::array<gmxfmm_measurement, 32> tried;
    int                                numTried = 0;
    tried.fill(chosen);
    if (choose)
    {
        // Where the pressure that goes with the accuracy cannot be had, forces count alone; and
        // with cells that are small by request, those of atoms that have just been assigned
        constexpr double                           c_any = std::numeric_limits<double>::infinity();
        const std::array<std::array<double, 2>, 3> allowed = {
            { { options->accuracy, allowedVirialError(volume, options->accuracy) },
              { options->accuracy, c_any },
              { c_any, c_any } }
        };
        // On a CPU by costs in the library's model, which are as good as times there; on a GPU
        // small systems take about as long with all settings, which no model knows
        const int reproducible = options->reproducible;
        options->reproducible  = (reproducible != 0 || options->device == GMXFMM_CPU) ? 1 : 0;
        status                 = GMXFMM_ERROR_OPTION;
        for (size_t i = 0; i < allowed.size() && status == GMXFMM_ERROR_OPTION; i++)
        {
            numTried = tried.size();
            status   = gmxfmm_choose(reference.get(),
                                   options,
                                   allowed[i][0],
                                   allowed[i][1],
                                   &chosen,
                                   tried.data(),
                                   &numTried,
                                   message.data(),
                                   message.size());
        }
        options->reproducible = reproducible;
    }
    else
    {
        status   = inUse != nullptr
                           ? gmxfmm_measure_plan(
                                 reference.get(), inUse, &chosen, message.data(), message.size())
                           : gmxfmm_measure(
                                 reference.get(), options, 0, &chosen, message.data(), message.size());
        tried[0] = chosen;
        numTried = 1;
    }
    result.status =
            (status == GMXFMM_OK ? FmmMeasurementStatus::Measured : FmmMeasurementStatus::OutOfReach);
    result.message = message.data();
    // The larger of two, of which one is not dominated by a few large forces; in liquids they are the same
    result.error         = std::max(chosen.error, chosen.error_limited);
    result.errorAnywhere = chosen.error_anywhere;
    result.errorMoved    = chosen.error_moved;
    result.errorVirial   = chosen.virial_error;
    result.table =
            tableHead(gmxfmm_reference_uncertainty(reference.get()), chosen.error_unit, volume > 0);
    for (int i = 0; i < numTried; i++)
    {
        result.table += tableLine(tried[i], volume);
    }
    return result;
}

double fmmAllowedVirialError(const double* box, int numAtoms, double accuracy)
{
    return allowedVirialError(volumeOfPressure(box, numAtoms), accuracy);
}

} // namespace gmx
