/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the options of the gmxfmm backend as those of a backend of the FMM module
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gmxfmmbackend.h"

#include "gromacs/options/optionsection.h"

namespace gmx
{

void GmxfmmBackendOptions::initMdpOptionsFmm(OptionSectionHandle& section)
{
    if (isDeclared)
    {
        options.addOptions(&section);
    }
}

void GmxfmmBackendOptions::initMdpTransformFmm(IKeyValueTreeTransformRules* rules)
{
    if (isDeclared)
    {
        FmmOptions::addTransformRules(rules);
    }
}

void GmxfmmBackendOptions::buildMdpOutputFmm(KeyValueTreeObjectBuilder* builder) const
{
    options.addOutput(builder);
}

void GmxfmmBackendOptions::validateMdpOptions(WarningHandler* /*wi*/) const
{
    // checkFmmInputrec() has done so, with all that depends on other options
}

} // namespace gmx
