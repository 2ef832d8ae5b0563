/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A plot of a table of results, drawn by gnuplot. */
#include "main_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "out_file.h"

enum
{
    c_width  = 960,
    c_height = 420,
    c_top    = 50,
    c_bottom = 360,
    c_legend = 790
};

/* Logarithmic upwards, over the order. */
typedef struct
{
    const char* label;
    int         left, right; /* of the frame */
    double      low, high;   /* log10 */
    int         first, last; /* order */
} panel;

static const char* const c_colours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b"};

static const char* colour(int line)
{
    return c_colours[line % (int)(sizeof(c_colours) / sizeof(c_colours[0]))];
}

static double at_x(const panel* p, int order)
{
    return p->left + (order - p->first + 0.5) / (p->last - p->first + 1) * (p->right - p->left);
}

static double at_y(const panel* p, double value)
{
    return c_bottom - (log10(value) - p->low) / (p->high - p->low) * (c_bottom - c_top);
}

/* Text of a file name, which may have anything in it. */
static void put_text(FILE* out, const char* text)
{
    for (; *text; text++)
    {
        switch (*text)
        {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            fputc((unsigned char)*text < ' ' ? '?' : *text, out);
        }
    }
}

static void put_label(FILE* out, double x, double y, const char* anchor, const char* text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    put_text(out, text);
    fputs("</text>\n", out);
}

/* 1, 2 and 5 of each decade, or the decades alone where there are many. */
static void put_axis(FILE* out, const panel* p)
{
    static const double parts[] = {1, 2, 5};
    const int           num     = p->high - p->low > 2 ? 1 : 3;
    char                text[32];
    fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"black\"/>\n", p->left,
            c_top, p->right - p->left, c_bottom - c_top);
    for (int decade = (int)floor(p->low); decade <= (int)ceil(p->high); decade++)
    {
        for (int i = 0; i < num; i++)
        {
            const double value = parts[i] * pow(10, decade), y = at_y(p, value);
            if (y <= c_bottom && y >= c_top)
            {
                snprintf(text, sizeof(text), "%g", value);
                fprintf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", p->left, y, p->right);
                put_label(out, p->left - 6, y + 4, "end", text);
            }
        }
    }
    for (int order = p->first; order <= p->last; order++)
    {
        snprintf(text, sizeof(text), "%d", order);
        put_label(out, at_x(p, order), c_bottom + 18, "middle", text);
    }
    put_label(out, 0.5 * (p->left + p->right), c_bottom + 38, "middle", "order");
    put_label(out, 0.5 * (p->left + p->right), c_top - 8, "middle", p->label);
}

static double value_of(const plot_point* point, int time)
{
    return time ? point->ms : point->error;
}

/* Limits, with a twentieth left above and below. */
static void set_limits(panel* p, const plot_point* points, int num, int time, double asked)
{
    double low = time ? INFINITY : asked, high = time ? 0 : asked;
    p->first = p->last = points[0].order;
    for (int i = 0; i < num; i++)
    {
        /* not fmin and fmax, of which gcc 12 for aarch64 fails to make vectors here (internal error) */
        const double value = value_of(&points[i], time);
        low                = value < low ? value : low;
        high               = value > high ? value : high;
        p->first           = points[i].order < p->first ? points[i].order : p->first;
        p->last            = points[i].order > p->last ? points[i].order : p->last;
    }
    const double room = fmax(0.05 * log10(high / low), 0.1);
    p->low            = log10(low) - room;
    p->high           = log10(high) + room;
}

static void put_points(FILE* out, const panel* p, const plot_point* points, int num, int time)
{
    int line = -1;
    for (int i = 0; i < num; i++)
    {
        const double x = at_x(p, points[i].order), y = at_y(p, value_of(&points[i], time));
        const int    goes_on = i > 0 && strcmp(points[i].name, points[i - 1].name) == 0;
        line += !goes_on;
        if (goes_on)
        {
            fprintf(out, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"%s\"/>\n", at_x(p, points[i - 1].order),
                    at_y(p, value_of(&points[i - 1], time)), x, y, colour(line));
        }
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x, y, colour(line));
        if (points[i].is_best)
        {
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"8\" fill=\"none\" stroke=\"black\"/>\n", x, y);
        }
        if (time && !goes_on)
        {
            fprintf(out, "<circle cx=\"%d\" cy=\"%d\" r=\"3.5\" fill=\"%s\"/>\n", c_legend, c_top + 10 + 18 * line,
                    colour(line));
            put_label(out, c_legend + 10, c_top + 14 + 18 * line, "start", points[i].name);
        }
    }
    if (time)
    {
        put_label(out, c_legend - 4, c_bottom, "start", "circle: the best");
    }
}

static void put_picture(FILE* out, const char* title, const plot_point* points, int num, double asked)
{
    panel error = {.label = "relative RMS force error", .left = 70, .right = 400};
    panel time  = {.label = "ms a step", .left = 450, .right = 770};
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            c_width, c_height);
    put_label(out, 0.5 * c_width, 20, "middle", title);
    set_limits(&error, points, num, 0, asked);
    set_limits(&time, points, num, 1, asked);
    put_axis(out, &error);
    put_axis(out, &time);
    fprintf(out, "<path d=\"M%d %.1fH%d\" stroke=\"black\" stroke-dasharray=\"6 4\"/>\n", error.left,
            at_y(&error, asked), error.right);
    put_label(out, error.right - 4, at_y(&error, asked) - 4, "end", "asked");
    put_points(out, &error, points, num, 0);
    put_points(out, &time, points, num, 1);
    fputs("</svg>\n", out);
}

int plot_write(const char* name, int overwrite, const char* title, const plot_point* points, int num, double asked)
{
    out_file out;

    if (out_file_open(&out, name, overwrite))
    {
        return -1;
    }
    put_picture(out.stream, title, points, num, asked);
    return out_file_close(&out);
}
