/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares the options of the gmxfmm backend as those of a backend of the FMM module
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_GMXFMMBACKEND_H
#define GMX_FMM_GMXFMMBACKEND_H

#include "fmmoptions.h"
#include "gmxfmmoptions.h"

namespace gmx
{

/*! \brief Options of the gmxfmm backend
 *
 * They are declared with coulombtype = FMM only: declared options are in every
 * .tpr file, which then only GROMACS with this backend reads.
 */
struct GmxfmmBackendOptions : IFmmOptions
{
    FmmOptions options;
    bool       isDeclared = false;

    void initMdpOptionsFmm(OptionSectionHandle& section) override;
    void initMdpTransformFmm(IKeyValueTreeTransformRules* rules) override;
    void buildMdpOutputFmm(KeyValueTreeObjectBuilder* builder) const override;
    void validateMdpOptions(WarningHandler* wi) const override;
};

} // namespace gmx

#endif
