/* SPDX-License-Identifier: LGPL-2.1-or-later
 * What GROMACS loads in place of PLUMED's library: a spring between the first atom and the fourth. */
#include <stdlib.h>
#include <string.h>

enum
{
    FIRST  = 0,
    SECOND = 3
};
static const double STIFFNESS = 1000; // kJ/mol/nm^2, plumed.py has it, too

typedef struct
{
    int         is_double;
    int         atoms;   // 0: they are in the order of the input
    const int*  indices; // of the input, where GROMACS has sorted them
    const void* positions;
    void *      forces, *virial;
} Kernel;

static int place_of(const Kernel* kernel, int atom)
{
    for (int i = 0; i < kernel->atoms; i++)
    {
        if (kernel->indices[i] == atom)
        {
            return i;
        }
    }
    return atom;
}

static double get(const Kernel* kernel, const void* array, int i)
{
    return kernel->is_double ? ((const double*)array)[i] : ((const float*)array)[i];
}

static void add(const Kernel* kernel, void* array, int i, double value)
{
    if (kernel->is_double)
    {
        ((double*)array)[i] += value;
    }
    else
    {
        ((float*)array)[i] += (float)value;
    }
}

static void calculate(const Kernel* kernel)
{
    const int first = 3 * place_of(kernel, FIRST), second = 3 * place_of(kernel, SECOND);
    double    apart[3];
    for (int i = 0; i < 3; i++)
    {
        apart[i] = get(kernel, kernel->positions, second + i) - get(kernel, kernel->positions, first + i);
    }
    for (int i = 0; i < 3; i++)
    {
        add(kernel, kernel->forces, first + i, STIFFNESS * apart[i]);
        add(kernel, kernel->forces, second + i, -STIFFNESS * apart[i]);
        for (int j = 0; j < 3; j++)
        {
            add(kernel, kernel->virial, 3 * i + j, STIFFNESS * apart[i] * apart[j]);
        }
    }
}

/* The names that a library of PLUMED has; what a caller asks for is a word */
void* plumedmain_create(void);
void  plumedmain_cmd(void* plumed, const char* word, const void* value);
void  plumedmain_finalize(void* plumed);

void* plumedmain_create(void)
{
    return calloc(1, sizeof(Kernel));
}

void plumedmain_cmd(void* plumed, const char* word, const void* value)
{
    Kernel* kernel = plumed;
    if (strcmp(word, "setRealPrecision") == 0)
    {
        kernel->is_double = *(const int*)value == sizeof(double);
    }
    else if (strcmp(word, "getApiVersion") == 0)
    {
        *(int*)value = 1;
    }
    else if (strcmp(word, "isEnergyNeeded") == 0)
    {
        *(int*)value = 0;
    }
    else if (strcmp(word, "setAtomsNlocal") == 0)
    {
        kernel->atoms = *(const int*)value;
    }
    else if (strcmp(word, "setAtomsGatindex") == 0)
    {
        kernel->indices = value;
    }
    else if (strcmp(word, "setPositions") == 0)
    {
        kernel->positions = value;
    }
    else if (strcmp(word, "setForces") == 0)
    {
        kernel->forces = (void*)value;
    }
    else if (strcmp(word, "setVirial") == 0)
    {
        kernel->virial = (void*)value;
    }
    else if (strcmp(word, "performCalc") == 0)
    {
        calculate(kernel);
    }
}

void plumedmain_finalize(void* plumed)
{
    free(plumed);
}
