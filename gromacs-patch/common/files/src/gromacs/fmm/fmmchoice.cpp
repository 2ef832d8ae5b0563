/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements how checkpoints keep gmx::FmmChoice
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmchoice.h"

#include <cstdint>

#include <string>

#include "gromacs/utility/keyvaluetree.h"
#include "gromacs/utility/keyvaluetreebuilder.h"

namespace gmx
{

namespace
{

//! Name of the object of a checkpoint
const char* const c_object = "gmxfmm-choice";

//! Calls a function with the name and the address of each whole number
template<typename Choice, typename Function>
void forEachNumber(Choice* choice, Function function)
{
    function("m2l", &choice->m2l);
    function("order", &choice->order);
    function("depth", &choice->depth);
    function("separation", &choice->separation);
    function("cells-a", &choice->grid[0]);
    function("cells-b", &choice->grid[1]);
    function("cells-c", &choice->grid[2]);
}

} // namespace

void writeFmmChoice(const FmmChoice& choice, KeyValueTreeObjectBuilder builder)
{
    if (choice.asked > 0)
    {
        auto object = builder.addObject(c_object);
        object.addValue<double>("asked", choice.asked);
        object.addValue<double>("accuracy", choice.accuracy);
        forEachNumber(&choice,
                      [&object](const char* name, const int* number)
                      { object.addValue<std::int64_t>(name, *number); });
    }
}

FmmChoice readFmmChoice(const KeyValueTreeObject& data)
{
    FmmChoice choice;
    if (data.keyExists(c_object))
    {
        const KeyValueTreeObject& object = data[c_object].asObject();
        choice.asked                     = object["asked"].cast<double>();
        choice.accuracy                  = object["accuracy"].cast<double>();
        forEachNumber(&choice,
                      [&object](const char* name, int* number)
                      { *number = static_cast<int>(object[name].cast<std::int64_t>()); });
    }
    return choice;
}

} // namespace gmx
