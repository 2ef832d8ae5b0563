/* SPDX-License-Identifier: LGPL-2.1-or-later
 * What grompp does with lines of an .mdp that have a neural-network potential beside coulombtype = FMM, without the
 * rest of grompp: the modules' options, then our checks. Prints the number of errors; the errors themselves go to
 * stderr, as grompp's do. */
#include "gmxpre.h"

#include <cstdio>

#include <memory>
#include <string>

#include "gromacs/applied_forces/nnpot/nnpot.h"
#include "gromacs/fileio/warninp.h"
#include "gromacs/fmm/fmm_mdmodule.h"
#include "gromacs/fmm/fmmpreprocess.h"
#include "gromacs/mdtypes/imdmodule.h"
#include "gromacs/mdtypes/imdpoptionprovider.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/options/options.h"
#include "gromacs/options/optionsection.h"
#include "gromacs/options/treesupport.h"
#include "gromacs/utility/keyvaluetreebuilder.h"
#include "gromacs/utility/keyvaluetreetransform.h"
#include "gromacs/utility/stringcompare.h"

using namespace gmx;

//! Usage: PROGRAM COULOMBTYPE NNPOT-ACTIVE
int main(int /*argc*/, char* argv[])
{
    KeyValueTreeBuilder lines;
    lines.rootObject().addValue<std::string>("nnpot-active", argv[2]);
    lines.rootObject().addValue<std::string>("nnpot-modelfile", "model.pt");

    t_inputrec ir;
    ir.coulombtype = std::string(argv[1]) == "FMM" ? CoulombInteractionType::Fmm : CoulombInteractionType::Pme;
    // as MDModules does, which would bring all other modules
    const std::unique_ptr<IMDModule> nnpot = NNPotModuleInfo::create(), fmm = FmmModuleInfo::create();
    if (ir.coulombtype == CoulombInteractionType::Fmm)
    {
        FmmModuleInfo::declareGmxfmmOptions(fmm.get());
    }
    KeyValueTreeTransformer transform;
    transform.rules()->addRule().keyMatchType("/", StringCompareType::CaseAndDashInsensitive);
    nnpot->mdpOptionProvider()->initMdpTransform(transform.rules()->scopedTransform("/applied-forces").rules());
    fmm->mdpOptionProvider()->initMdpTransform(transform.rules()->scopedTransform("/fast-multipole-method").rules());
    Options options;
    auto    appliedForces = options.addSection(OptionSection("applied-forces"));
    auto    fmmSection    = options.addSection(OptionSection("fast-multipole-method"));
    nnpot->mdpOptionProvider()->initMdpOptions(&appliedForces);
    fmm->mdpOptionProvider()->initMdpOptions(&fmmSection);
    ir.params = new KeyValueTreeObject(
        adjustKeyValueTreeFromOptions(transform.transform(lines.build(), nullptr).object(), options));

    WarningHandler wi(true, 0);
    checkFmmInputrec(&ir, &wi);
    std::printf("%d errors\n", wi.errorCount());
    return 0;
}
