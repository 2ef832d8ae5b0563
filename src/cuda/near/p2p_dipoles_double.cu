/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* P2P with dipoles in double precision. */
#define DIPOLE_T double
#define DIPOLE_R double
#include "cuda/near/p2p_dipoles.h"
