/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the measurement of FMM force errors on the simulated system
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmmeasure.h"

#include <array>
#include <memory>
#include <vector>

#include "gromacs/topology/topology.h"
#include "gromacs/utility/real.h"
#include "gromacs/utility/stringutil.h"

namespace gmx
{

namespace
{

//! Frees a reference
struct ReferenceDeleter
{
    void operator()(gmxfmm_reference* reference) const { gmxfmm_reference_destroy(reference); }
};

//! Charges and exclusions of all atoms
struct Charges
{
    explicit Charges(const gmx_mtop_t& mtop)
    {
        charge.reserve(mtop.natoms);
        start.reserve(mtop.natoms + 1);
        for (const gmx_molblock_t& molblock : mtop.molblock)
        {
            const gmx_moltype_t& moltype = mtop.moltype[molblock.type];
            for (int m = 0; m < molblock.nmol; m++)
            {
                const int offset = static_cast<int>(charge.size());
                for (int a = 0; a < moltype.atoms.nr; a++)
                {
                    charge.push_back(moltype.atoms.atom[a].q);
                    for (const int excluded : moltype.excls[a])
                    {
                        list.push_back(offset + excluded);
                    }
                    start.push_back(static_cast<int>(list.size()));
                }
            }
        }
    }
    std::vector<real> charge;
    std::vector<int>  start = { 0 };
    std::vector<int>  list;
};

//! Returns whether order and cells are both given, so that there is nothing to choose
bool isFixed(const gmxfmm_options& options)
{
    return options.order >= 0 && (options.grid[0] > 0 || options.depth > 0);
}

//! Returns the parameters of a measurement, and what came of them, as a line
std::string tableLine(const gmxfmm_measurement& m)
{
    const std::string cells =
            formatString("%d x %d x %d", m.info.grid[0], m.info.grid[1], m.info.grid[2]);
    return formatString("%10s %6d %16s %11d %10.1e %10.1e\n",
                        gmxfmm_m2l_name(m.info.m2l),
                        m.info.order,
                        cells.c_str(),
                        m.info.separation,
                        m.info.predicted_error,
                        m.error);
}

} // namespace

FmmMeasuredError measureFmmError(const gmx_mtop_t&    mtop,
                                 ArrayRef<const RVec> x,
                                 const double*        box,
                                 gmxfmm_options*      options)
{
    const Charges       charges(mtop);
    const gmxfmm_system system = {
        mtop.natoms, box, x.data(), charges.charge.data(), charges.start.data(), charges.list.data()
    };
    const double           asked   = options->accuracy;
    std::array<char, 1024> message = { { '\0' } };
    FmmMeasuredError       result;

    gmxfmm_reference* made = nullptr;
    gmxfmm_status     status =
            gmxfmm_reference_create(&made, options, &system, message.data(), message.size());
    const std::unique_ptr<gmxfmm_reference, ReferenceDeleter> reference(made);
    if (status != GMXFMM_OK)
    {
        result.warning = formatString(
                "NOTE: The error of the FMM forces could not be measured at the start (%s), so "
                "that "
                "parameters are those that are expected to be as accurate in a liquid.",
                message.data());
        return result;
    }

    // In liquids what the library expects is on the safe side, and so are energies and pressure
    std::array<gmxfmm_measurement, 33> tried    = {};
    gmxfmm_measurement                 chosen   = {};
    int                                numTried = 0;
    status = gmxfmm_measure(reference.get(), options, 0, &chosen, message.data(), message.size());
    result.isValid = (status == GMXFMM_OK);
    tried[0]       = chosen;
    if (result.isValid && chosen.error > asked)
    {
        if (isFixed(*options))
        {
            result.warning = formatString(
                    "NOTE: With the FMM parameters given, the relative RMS error of the forces is "
                    "%.1e, while fmm-accuracy = %.1e.",
                    chosen.error,
                    asked);
        }
        else
        {
            numTried = tried.size() - 1;
            status   = gmxfmm_choose(
                    reference.get(), options, &chosen, tried.data() + 1, &numTried, message.data(), message.size());
        }
    }
    if (status != GMXFMM_OK)
    {
        result.warning = formatString("WARNING: FMM, measured at the start: %s", message.data());
    }
    result.error = chosen.error;
    if (result.isValid)
    {
        result.table = formatString(
                "FMM: force errors measured at the coordinates of the input, to %.0e\n\n"
                "    method  order            cells  separation   expected   measured\n",
                gmxfmm_reference_uncertainty(reference.get()));
        for (int i = 0; i < 1 + numTried; i++)
        {
            result.table += tableLine(tried[i]);
        }
    }
    return result;
}

} // namespace gmx
