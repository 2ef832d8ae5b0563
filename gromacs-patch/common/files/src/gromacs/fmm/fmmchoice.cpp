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

#include <algorithm>
#include <string>
#include <vector>

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

//! Calls a function with the name and the address of each number of evaluations
template<typename Schedule, typename Function>
void forEachCount(Schedule* schedule, Function function)
{
    function("evaluations-since", &schedule->since);
    function("evaluations-least", &schedule->least);
    function("evaluations-most", &schedule->most);
}

//! Adds an array of numbers
template<typename Container>
void addNumbers(KeyValueTreeObjectBuilder* object, const char* name, const Container& numbers)
{
    auto array = object->addUniformArray<double>(name);
    for (const double number : numbers)
    {
        array.addValue(number);
    }
}

//! Returns an array of numbers
std::vector<double> readNumbers(const KeyValueTreeObject& object, const char* name)
{
    std::vector<double> numbers;
    for (const KeyValueTreeValue& value : object[name].asArray().values())
    {
        numbers.push_back(value.cast<double>());
    }
    return numbers;
}

} // namespace

void writeFmmChoice(const FmmChoice& choice, KeyValueTreeObjectBuilder builder)
{
    if (choice.asked > 0 || choice.schedule.since >= 0 || choice.nstlist > 0)
    {
        auto object = builder.addObject(c_object);
        object.addValue<double>("asked", choice.asked);
        object.addValue<double>("accuracy", choice.accuracy);
        forEachNumber(&choice,
                      [&object](const char* name, const int* number)
                      { object.addValue<std::int64_t>(name, *number); });
        if (!choice.x.empty())
        {
            addNumbers(&object, "coordinates", choice.x);
            addNumbers(&object, "box", choice.box);
        }
        if (choice.schedule.since >= 0)
        {
            forEachCount(&choice.schedule,
                         [&object](const char* name, const std::int64_t* count)
                         { object.addValue<std::int64_t>(name, *count); });
            object.addValue<double>("spread", choice.schedule.spread);
            object.addValue<double>("spread-at-choice", choice.schedule.spreadAtChoice);
        }
        if (choice.nstlist > 0)
        {
            object.addValue<std::int64_t>("nstlist", choice.nstlist);
            object.addValue<bool>("nstlist-for-gpu", choice.isNstlistForGpu);
            object.addValue<std::int64_t>("nstlist-ranks", choice.nstlistRanks);
        }
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
        if (object.keyExists("coordinates"))
        {
            choice.x                      = readNumbers(object, "coordinates");
            const std::vector<double> box = readNumbers(object, "box");
            std::copy(box.begin(), box.end(), choice.box.begin());
        }
        if (object.keyExists("spread"))
        {
            forEachCount(&choice.schedule,
                         [&object](const char* name, std::int64_t* count)
                         { *count = object[name].cast<std::int64_t>(); });
            choice.schedule.spread         = object["spread"].cast<double>();
            choice.schedule.spreadAtChoice = object["spread-at-choice"].cast<double>();
        }
        if (object.keyExists("nstlist"))
        {
            choice.nstlist         = static_cast<int>(object["nstlist"].cast<std::int64_t>());
            choice.isNstlistForGpu = object["nstlist-for-gpu"].cast<bool>();
            if (object.keyExists("nstlist-ranks")) // Runs on one rank did not write it before
            {
                choice.nstlistRanks = static_cast<int>(object["nstlist-ranks"].cast<std::int64_t>());
            }
        }
    }
    return choice;
}

} // namespace gmx
