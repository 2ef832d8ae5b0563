/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "support/charge_reader.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <zlib.h>

namespace fmmtest
{

static bool isOwn(const std::string& name)
{
    return name.compare(0, 4, "own-") == 0;
}

static std::string pathOf(const std::string& name)
{
    const char*       given  = std::getenv(isOwn(name) ? "GMXFMM_TESTS_OWN_DATA" : "GMXFMM_REFERENCE_DATA");
    const std::string folder = given && *given ? given : isOwn(name) ? GMXFMM_TESTS_MADE : GMXFMM_TESTS_REFERENCE_DATA;
    return folder + "/" + name + ".txt.gz";
}

static void addRow(const std::string& line, ReferenceSystem* out)
{
    std::istringstream row(line);
    double             v[8];
    for (double& value : v)
    {
        if (!(row >> value))
        {
            throw std::runtime_error("a reference row needs 8 columns: " + line);
        }
    }
    out->system.add({v[0], v[1], v[2]}, v[3]);
    out->reference.potential.push_back(v[4]);
    out->reference.field.insert(out->reference.field.end(), v + 5, v + 8);
    out->reference.force.insert(out->reference.force.end(), {v[3] * v[5], v[3] * v[6], v[3] * v[7]});
    out->reference.energy += 0.5 * v[3] * v[4];
}

std::vector<std::string> presentOf(const std::vector<std::string>& names)
{
    std::vector<std::string> found;
    for (const std::string& name : names)
    {
        if (isOwn(name) || std::ifstream(pathOf(name)))
        {
            found.push_back(name);
        }
    }
    return found;
}

ReferenceSystem referenceSystem(const std::string& name)
{
    const std::string path = pathOf(name);
    gzFile            file = gzopen(path.c_str(), "rb");
    if (!file)
    {
        throw std::runtime_error(path + " cannot be read");
    }
    ReferenceSystem out;
    char            buffer[4096];
    while (gzgets(file, buffer, sizeof(buffer)))
    {
        const std::string line = buffer, boxKey = "# box:";
        if (line.compare(0, boxKey.size(), boxKey) == 0)
        {
            std::istringstream numbers(line.substr(boxKey.size()));
            for (double& component : out.system.box)
            {
                numbers >> component;
            }
        }
        else if (line[0] != '#')
        {
            addRow(line, &out);
        }
    }
    gzclose(file);
    return out;
}

} // namespace fmmtest
