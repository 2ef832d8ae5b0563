/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* P2P with dipoles in single precision. */
#define DIPOLE_T float
#define DIPOLE_R float
#include "cuda/near/p2p_dipoles.h"
