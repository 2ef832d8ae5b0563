/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Comments of point-charge files that were meant as headers: without a box a system is open, and a misspelt header that
 * is taken as a comment makes it so in silence. */
#ifndef GMXFMM_CHARGE_HEADER_H
#define GMXFMM_CHARGE_HEADER_H

/* text is what follows # and blanks. The key that was meant, for which the first *length characters of text are to be
 * shown, or NULL for a comment. */
const char* charge_header_meant(const char* text, int* length);

#endif
