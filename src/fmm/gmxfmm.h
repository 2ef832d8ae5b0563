/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gmxfmm: Coulomb energies, forces and the virial of point charges by the fast multipole method.
 *
 * Conventions, for everything below
 *   positions      x[3*i+d], any length unit (GROMACS: nm); boxes are row vectors a, b, c
 *   charges        q[i], any charge unit (GROMACS: e)
 *   potential      phi_i = f * sum_j q_j / r_ij over all particles and periodic images, less excluded pairs
 *   field          E_i = -grad phi_i;  force F_i = q_i E_i
 *   energy         1/2 sum_i q_i phi_i, given in two parts: near (pairs in neighbouring cells) and far (all the rest)
 *   virial         Xi = -1/2 sum_pairs r_ij (x) F_ij, row-major 3x3; tr Xi = -E/2 for pure Coulomb systems
 *   f              options.prefactor, multiplied once, on output
 * A periodic system with a net charge has a uniform neutralising background.
 * Arrays of positions, charges, potentials, fields and forces are float or double as options.array_type says.
 *
 * Life cycle: default_options -> create -> set_charges [-> set_exclusions] -> { assign -> execute, execute, ... } ->
 * destroy, with set_box whenever the box has changed. On a GPU, after one assign, steps and further assignments may be
 * put on a stream instead, without waiting: { enqueue_box -> enqueue_assign -> enqueue, enqueue, ... }. Memory is
 * allocated in create, set_*, enqueue_box and assign, never in execute, enqueue and enqueue_assign. Every call returns
 * a status; the text that names the cause is kept in the plan (gmxfmm_message). There is no global state: several plans
 * may be used at once from several threads, one thread a plan at a time.
 *
 * Structures can grow without a change of the binary interface: that of options knows its size, the others have room at
 * their end, `reserved`, which a program sets to zero with all that it does not use.
 */
#ifndef GMXFMM_H
#define GMXFMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

#if defined(__GNUC__)
#    define GMXFMM_API __attribute__((visibility("default")))
#else
#    define GMXFMM_API
#endif

/* Of this header; gmxfmm_version() is the library's. */
#define GMXFMM_VERSION "0.1.0"
#define GMXFMM_VERSION_MAJOR 0
#define GMXFMM_VERSION_MINOR 1
#define GMXFMM_VERSION_PATCH 0

#define GMXFMM_MAX_ORDER 40        /* largest expansion order in double precision */
#define GMXFMM_MAX_ORDER_SINGLE 20 /* and in single precision */

#define GMXFMM_MAX_DEGREE 20 /* largest degree of interpolation of the treecode */

/* Of order, grid (all three), depth, separation, num_threads, theta, degree and leaf: let the library choose. */
#define GMXFMM_AUTO (-1)

    typedef struct gmxfmm_plan gmxfmm_plan;

    typedef enum
    {
        GMXFMM_OK = 0,
        GMXFMM_ERROR_NULL,        /* a required pointer is NULL */
        GMXFMM_ERROR_OPTION,      /* an option is out of its range, or two of them contradict each other */
        GMXFMM_ERROR_BOX,         /* box not finite, singular or left-handed */
        GMXFMM_ERROR_CHARGE,      /* a charge is not finite */
        GMXFMM_ERROR_EXCLUSION,   /* exclusion index out of range, list not sorted into rows, or not symmetric */
        GMXFMM_ERROR_POSITION,    /* a position is not finite */
        GMXFMM_ERROR_COINCIDENT,  /* two charges that are not excluded from each other stand at one place */
        GMXFMM_ERROR_ORDER,       /* calls in the wrong order: execute before assign, assign before set_charges */
        GMXFMM_ERROR_UNSUPPORTED, /* valid, but not offered by this build or this path */
        GMXFMM_ERROR_MEMORY,      /* allocation failed */
        GMXFMM_ERROR_DEVICE,      /* a device or its runtime failed */
        GMXFMM_NUM_STATUS
    } gmxfmm_status;

    typedef enum
    {
        GMXFMM_SINGLE = 0,
        GMXFMM_DOUBLE
    } gmxfmm_precision;

    typedef enum
    {
        GMXFMM_TINFOIL = 0, /* conducting surroundings, as PME with epsilon-surface = 0 */
        GMXFMM_VACUUM,      /* + 2 pi / (3 V) |sum q x|^2, from the positions as passed to execute (whole molecules!) */
        GMXFMM_OPEN         /* no periodicity; no box needed */
    } gmxfmm_boundary;

    typedef enum
    {
        GMXFMM_M2L_AUTO = 0,
        GMXFMM_M2L_FFT,       /* one level of cells, convolution by FFT */
        GMXFMM_M2L_ROTATION,  /* octree, O(p^3) by fast rotation */
        GMXFMM_M2L_SYMMETRIC, /* octree, O(p^4) with presorted operators */
        GMXFMM_M2L_DYNAMIC,   /* octree, O(p^4) by dynamic parallelism (GPU only) */
        GMXFMM_M2L_NAIVE      /* octree, O(p^4) loops */
    } gmxfmm_m2l;

    typedef enum
    {
        GMXFMM_CPU = 0,
        GMXFMM_CUDA
    } gmxfmm_device;

    typedef enum
    {
        GMXFMM_FMM = 0,
        GMXFMM_TREECODE /* barycentric Lagrange treecode, open boundary: Vaughn, Wilson & Krasny 2020 */
    } gmxfmm_method;

    typedef enum
    {
        GMXFMM_COULOMB = 0, /* 1/r */
        GMXFMM_YUKAWA       /* exp(-kappa r)/r (treecode) */
    } gmxfmm_kernel;

    typedef enum
    {
        GMXFMM_PARTICLE = 0, /* batches of targets meet clusters of sources, O(N log N) */
        GMXFMM_DUAL          /* clusters meet clusters: faster at moderate accuracies, O(N) (CPU) */
    } gmxfmm_traversal;

    /* All options; gmxfmm_default_options() fills in the defaults given in brackets. Where 0 stands for automatic,
     * GMXFMM_AUTO does, too. New options come at the end. */
    typedef struct
    {
        size_t size;           /* of this structure where the program was compiled; gmxfmm_default_options() sets it */
        double accuracy;       /* [4e-4] asked relative RMS force error, 1e-12..0.1; chooses what is left automatic */
        int    order;          /* [-1] expansion order p, 0..20 (double precision: 40); -1: automatic */
        int    grid[3];        /* [0 0 0] cells along each box vector, >= 1; of a periodic octree its leaves, multiples
                                * of 2^depth; 0 0 0: automatic */
        int        depth;      /* [-1] octree depth, 1..9; -1: automatic, or as many levels as grid allows */
        int        separation; /* [0] ws, layers of near cells, 1 or 2; 0: automatic */
        gmxfmm_m2l m2l;        /* [AUTO] way through the far field */
        int        m2l_to_parent; /* [0] 1: far source cells of a stencil straight to the target's parent (octree); for
                                   * single evaluations: forces are the gradient of the energy to truncation only */
        int m2l_truncate; /* [-1] each translation only to the order that its distance needs (octree): by the mean
                           * square of its error, that order or 3/4 of it (1), or by its bound as Gumerov & Duraiswami
                           * 2008, eq. 24 (2); 0: all to the same; -1: 1 with rotation, else 0 */
        int              vertical_rotation; /* [0] 1: M2M and L2L by rotation, too; slower, for comparison (octree) */
        gmxfmm_boundary  boundary;          /* [TINFOIL] */
        gmxfmm_precision precision;         /* [SINGLE] arithmetic of the step (lattice sums are double always) */
        gmxfmm_precision array_type;        /* [DOUBLE] type of the caller's arrays */
        gmxfmm_device    device;            /* [CPU] */
        int              num_threads;       /* [0] OpenMP threads; 0: omp_get_max_threads() */
        int              device_id;         /* [0] which of several GPUs, as the CUDA runtime counts them */
        int              reproducible; /* [0] 1: the same input gives the same bits in every run (no timed FFT plans),
                                        * whatever boxes came before, and in an open system positions since the first
                                        * assign */
        gmxfmm_method method;          /* [FMM] the next options are the treecode's, the ones from order to
                                        * vertical_rotation the FMM's; accuracy is of both */
        gmxfmm_kernel kernel;          /* [COULOMB] */
        double        kappa;           /* [0] inverse length of the Yukawa kernel, 0..1e100 */
        double        theta; /* [0] a batch of targets and a cluster are far if their radii add up to less than theta
                              * times the distance of their centres, 1e-6..0.999999; 0: automatic */
        int              degree;         /* [0] of interpolation, 1..20; 0: automatic */
        int              leaf;           /* [0] most particles in a leaf and targets in a batch, >= 1; 0: automatic */
        gmxfmm_traversal traversal;      /* [PARTICLE] */
        double           measured_error; /* [NAN] by gmxfmm_choose, for gmxfmm_info; NAN: nothing was measured */
        double           measured_time;  /* [NAN] likewise, s, of a step */
        double           prefactor;      /* [1] f, e.g. 138.935458 / epsilon_r in GROMACS units; not 0 */
        const char*      cache_dir; /* [NULL] folder, made if need be, for kernels that a plan for a GPU has to compile
                                     * (m2l = rotation at high orders), so that the next one finds them; NULL: none */
    } gmxfmm_options;

    /* What execute is asked for. NULL or 0 leaves a thing out, and the time it takes. Arrays are in the caller's
     * particle order, with receivers in theirs, and overwritten. */
    typedef struct
    {
        void* force;       /* F, 3 n (not with receivers) */
        void* field;       /* E, 3 n */
        void* potential;   /* phi, n */
        int   want_energy; /* fill energy_near and energy_far */
        int   want_virial; /* fill virial */
        /* results */
        double energy_near;
        double energy_far;
        double virial[9];
        double reserved[8];
    } gmxfmm_output;

    /* Stages of a step on a device, for measurements. */
    typedef enum
    {
        GMXFMM_STAGE_PERMUTE = 1, /* positions into cells' order and frames */
        GMXFMM_STAGE_NEAR    = 2,
        GMXFMM_STAGE_FAR     = 4,
        GMXFMM_STAGE_OUTPUT  = 8 /* sums, and results in the caller's order */
    } gmxfmm_stage;

    /* What enqueue is asked for: memory of the plan's device. NULL leaves a thing out. */
    typedef struct
    {
        void*    force;     /* F, 3 n */
        void*    field;     /* E, 3 n */
        void*    potential; /* phi, n */
        double*  energy;    /* 2: near, far */
        double*  virial;    /* 9 */
        int*     status;    /* a gmxfmm_status: OK, POSITION or COINCIDENT, as execute would return */
        unsigned stages;    /* 0: all; otherwise those whose bits are set, with what earlier calls left of the others */
        /* A cudaEvent_t that is recorded when the arrays are written, for who needs them sooner than the rest: what
         * energy and virial take beside them is computed after it, at the lowest priority. In a graph it is an external
         * node. */
        void* arrays_done;
        void* reserved[7];
    } gmxfmm_device_output;

    /* What a plan does, after options and automatic choices; times are sums over all executes since the last reset. */
    typedef struct
    {
        int64_t          num_particles;
        gmxfmm_m2l       m2l;
        gmxfmm_precision precision;
        int              order;
        int              grid[3];
        int              depth;     /* -1 on the fft path */
        int              num_cells; /* cells, or leaves that hold particles; 0 before assign */
        int              separation;
        int              num_near_cells;  /* cells in the near set, the cell itself included */
        double           near_particles;  /* mean number of particles in the near set */
        double           predicted_error; /* of the model in tune.c: relative RMS force error */
        double           measured_error;  /* options.measured_error, or what gmxfmm_measure has measured */
        double           measured_time;   /* likewise */
        gmxfmm_method    method;
        double           theta; /* the treecode's, after the first assign, and so is what follows; predicted_error and
                                 * measured_error are then of potential and field, whichever is larger */
        int     degree;
        int     leaf;
        int     num_clusters;
        double  pairs_per_target; /* evaluations of the kernel, mean */
        double  near_range;       /* every pair closer than this at assign is in the near field */
        int     num_threads;
        size_t  bytes; /* memory held by the plan */
        int64_t num_executes;
        int64_t num_spectra; /* times the lattice spectra were computed */
        double  time_assign; /* seconds */
        double  time_spectra;
        double  time_permute;
        double  time_near;
        double  time_p2m;
        double  time_m2m; /* octree */
        double  time_m2l; /* fft path: transforms and product; octree: with the lattice at the roots */
        double  time_l2l; /* octree */
        double  time_l2p;
        double  time_charges; /* treecode: modified charges of clusters */
        double  time_sums;    /* treecode */
        double  time_output;
        const char*
                simd; /* level of x86-64 whose instructions compute: v2, v3, v4; "": a GPU, or one processor's build */
        int64_t graph_version; /* as long as this is the same, a graph of gmxfmm_enqueue that a stream captured does
                                * what the call would do; all calls but enqueue_assign, enqueue and those that only
                                * ask may change it */
        double reserved[16];
    } gmxfmm_info;

    /* Version of the library, "major.minor.patch". */
    GMXFMM_API const char* gmxfmm_version(void);

    /* Fills *options with the defaults: the first `size` bytes of it, which is what the program has room for. */
    GMXFMM_API void gmxfmm_default_options_of_size(gmxfmm_options* options, size_t size);

    static inline void gmxfmm_default_options(gmxfmm_options* options)
    {
        gmxfmm_default_options_of_size(options, sizeof(*options));
    }

    /* What a program that reads options has to know of one. */
    typedef struct
    {
        const char* name;     /* member of gmxfmm_options */
        const char* help;     /* what it is, half a line */
        const char* standard; /* default, in words */
        const char* choices;  /* of an enum: names in its order from 0 on, | between them; NULL: a number, or three */
        double      lowest;   /* range, without GMXFMM_AUTO */
        double      highest;
    } gmxfmm_option;

    /* The option with this name, or NULL: all that have a range (options.def). */
    GMXFMM_API const gmxfmm_option* gmxfmm_find_option(const char* name);

    /* Whether a plan can be made here for this device: OK; UNSUPPORTED: not in this build; DEVICE: none there with this
     * number, or too old. message (may be NULL) has the cause, at most message_size - 1 characters. */
    GMXFMM_API gmxfmm_status gmxfmm_check_device(gmxfmm_device device,
                                                 int           device_id,
                                                 char*         message,
                                                 size_t        message_size);

    /* Makes a plan for about num_particles particles in box (9 reals, row vectors; NULL with boundary OPEN).
     * What the options leave automatic is chosen here from num_particles and box and then kept as the box changes, so
     * that a continued run computes as the first one did; an open system is fitted to the particles at each assign. On
     * failure *plan is NULL and message (may be NULL) has the cause, at most message_size - 1 characters. Errors: NULL,
     * OPTION, BOX, UNSUPPORTED, MEMORY, DEVICE. */
    GMXFMM_API gmxfmm_status gmxfmm_create(gmxfmm_plan**         plan,
                                           const gmxfmm_options* options,
                                           int64_t               num_particles,
                                           const double*         box,
                                           char*                 message,
                                           size_t                message_size);

    /* Replaces the box. Cells move with it and particles stay in theirs, so this may be called between assigns, unless
     * the box takes quite another shape (other vectors of the same lattice, say): then execute asks for an assign
     * first. Isotropic scaling costs nothing; another shape renews the lattice spectra at the next execute. Where a
     * box is scaled again and again by one factor along z and another across, these are interpolated between a few
     * shapes, with an error of the forces of 5e-3 of theirs at most, unless options.reproducible is set; that
     * takes three times the memory of one shape's spectra more. With device = CUDA and m2l = fft it does not wait for
     * the device: enqueued steps keep the box they were enqueued with, the next has the new one. (It may wait where the
     * box changed by much.) Errors: NULL, BOX, UNSUPPORTED, MEMORY, DEVICE. */
    GMXFMM_API gmxfmm_status gmxfmm_set_box(gmxfmm_plan* plan, const double* box);

    /* Sets the number of particles and their charges, q[n] (copied). Clears exclusions and assignment when n changes.
     * Errors: NULL, OPTION (n < 0), CHARGE, MEMORY. */
    GMXFMM_API gmxfmm_status gmxfmm_set_charges(gmxfmm_plan* plan, int64_t n, const void* q);

    /* Sets the pairs left out: particle i leaves out list[start[i]] .. list[start[i+1]-1]; start[n+1]. Both directions
     * must be listed; a particle itself may be. The nearest image of a pair (at assign) is what is left out. Errors:
     * NULL, EXCLUSION, ORDER, MEMORY. */
    GMXFMM_API gmxfmm_status gmxfmm_set_exclusions(gmxfmm_plan* plan, const int* start, const int* list);

    /* Sets targets that are no charges ("receivers"), places x[3n] (copied) that potential and field are wanted at
     * instead of at the charges; n = 0: at the charges again. They belong to the next assign; output arrays are then of
     * n targets, in their order, and there are no forces, energies or virial. Errors: NULL, OPTION (n < 0), MEMORY. */
    GMXFMM_API gmxfmm_status gmxfmm_set_targets(gmxfmm_plan* plan, int64_t n, const void* x);

    /* The former name of gmxfmm_set_targets, for one release. */
    GMXFMM_API gmxfmm_status gmxfmm_set_targets(gmxfmm_plan* plan, int64_t n, const void* x);

    /* Puts the particles at x[3n] into cells, until the next assign. Any periodic image of a particle will do.
     * Errors: NULL, ORDER, POSITION, UNSUPPORTED, MEMORY. */
    GMXFMM_API gmxfmm_status gmxfmm_assign(gmxfmm_plan* plan, const void* x);

    /* Computes what output asks for at x[3n]. Particles should not have moved more than a fraction of a cell since
     * assign. Errors: NULL, ORDER, POSITION, COINCIDENT (both found after the fact, in the results). */
    GMXFMM_API gmxfmm_status gmxfmm_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output);

    /* A step of a plan with device = CUDA, put on the caller's stream (a cudaStream_t; NULL: the legacy default
     * stream): x[3n] and what output points to are memory of the device, of the array type. The host does not wait,
     * nothing is allocated, and the stream may be capturing a graph (after one call outside a capture; a graph is
     * of use as long as gmxfmm_info.graph_version is what it was then). Near and far field run on streams of the plan,
     * forked from the caller's and joined to it, of other priorities, which a graph keeps only if it is instantiated
     * with cudaGraphInstantiateFlagUseNodePriority. One step of a plan at a time: put the next one on the same stream,
     * or behind an event. Errors: NULL, ORDER, UNSUPPORTED (device = CPU; the treecode: a virial, or stages), DEVICE;
     * those of positions come in output->status. The arrays of set_charges, set_targets and assign may be of the host
     * or a device, too, in a plan with device = CUDA; these calls wait for all that the device has in hand. */
    GMXFMM_API gmxfmm_status gmxfmm_enqueue(gmxfmm_plan*                plan,
                                            const void*                 x,
                                            const gmxfmm_device_output* output,
                                            void*                       stream);

    /* As gmxfmm_assign, put on the caller's stream (a cudaStream_t) of a plan with device = CUDA: x[3n] is memory of
     * the device, the host does not wait, nothing is allocated, and the stream may be capturing a graph. Steps put on
     * the same stream before (or on what it waits for) use the old cells, later ones the new, also those of graphs that
     * were captured before, in the same box. Cells are those of the last gmxfmm_assign, deformed with the box. A
     * position that no cell can hold comes as POSITION in output->status of the steps that follow, and from a
     * gmxfmm_execute after the stream has been waited for, until the next assignment. Errors: NULL; ORDER:
     * gmxfmm_assign must come first, once and again after set_charges with another n, set_exclusions, set_targets, or
     * a box in which other cells are near each other; UNSUPPORTED: device = CPU, an octree, boundary = OPEN, or
     * receivers, where gmxfmm_assign does it; DEVICE.
     */
    GMXFMM_API gmxfmm_status gmxfmm_enqueue_assign(gmxfmm_plan* plan, const void* x, void* stream);

    /* As gmxfmm_set_box, and on a plan with device = CUDA the lattice sums of the new box are begun at once, behind
     * what is in the caller's stream (a cudaStream_t): who knows the box before the positions has less to wait for in
     * the next gmxfmm_enqueue on that stream. While the stream captures a graph, as gmxfmm_set_box. Graphs of steps
     * that were captured before have the new box, too, if gmxfmm_info.graph_version has not changed: with m2l = fft
     * where the box was scaled isotropically, or again along z and across as in semi-isotropic pressure coupling.
     * Errors: as gmxfmm_set_box.
     */
    GMXFMM_API gmxfmm_status gmxfmm_enqueue_box(gmxfmm_plan* plan, const double* box, void* stream);

    /* Parameters in use, predicted error, memory and times. Errors: NULL. */
    GMXFMM_API gmxfmm_status gmxfmm_get_info(const gmxfmm_plan* plan, gmxfmm_info* info);

    /* Sets the times and counts of gmxfmm_info to zero. */
    GMXFMM_API void gmxfmm_reset_times(gmxfmm_plan* plan);

    /* A system to measure errors on: as for create, set_charges, set_exclusions and assign. Arrays are of the array
     * type of the options that come with it, and must outlive what is made from them. */
    typedef struct
    {
        int64_t       n;
        const double* box; /* 9; NULL with boundary OPEN */
        const void*   x;   /* 3 n */
        const void*   q;   /* n */
        const int*    excl_start;
        const int*    excl_list; /* both NULL: none */
        const void*   x_before;  /* 3 n: where particles might have been at the last assign; NULL: at x */
        const void*   reserved[4];
    } gmxfmm_system;

    /* Forces on a system that errors of settings are measured against. */
    typedef struct gmxfmm_reference gmxfmm_reference;

    /* What settings reach on a system. */
    typedef struct
    {
        gmxfmm_info info;   /* what they are; its times are of all evaluations */
        double      error;  /* relative RMS error of the forces; where these are zero by symmetry, over (mean |q| / d)^2
                             * with the particle spacing d, times the prefactor */
        double error_moved; /* the same where cells were assigned at x_before */
        double virial_error; /* largest error of an element of the virial, unit of energy */
        double time;         /* s, of a step that gives forces: the fastest; 0: none was timed */
        double reserved[8];
    } gmxfmm_measurement;

    /* Evaluates the forces of a system twice, with other cells or another order each time, both for 3 % of
     * options->accuracy or less, until the two differ by no more than a tenth of it; in double precision, but the first
     * in single where 1e-4 or more is asked and that does to compare with. Of the options
     * device, boundary, m2l, prefactor, threads and array type matter. Its memory: three numbers of that type a
     * particle, and two plans while it is made. Errors: as create, set_charges and assign; OPTION: double precision is
     * not enough. */
    GMXFMM_API gmxfmm_status gmxfmm_reference_create(gmxfmm_reference**    reference,
                                                     const gmxfmm_options* options,
                                                     const gmxfmm_system*  system,
                                                     char*                 message,
                                                     size_t                message_size);

    /* How far the two evaluations differ, as a relative RMS error of forces: what a measured error is uncertain by. */
    GMXFMM_API double gmxfmm_reference_uncertainty(const gmxfmm_reference* reference);

    /* Makes a plan with these options for the system of the reference, evaluates 1 + repeats times, and compares.
     * Errors: as create, set_charges, assign and execute. */
    GMXFMM_API gmxfmm_status gmxfmm_measure(const gmxfmm_reference* reference,
                                            const gmxfmm_options*   options,
                                            int                     repeats,
                                            gmxfmm_measurement*     measurement,
                                            char*                   message,
                                            size_t                  message_size);

    /* Chooses the cheapest settings that are measured to reach what was asked, less a tenth for other configurations of
     * the same system. At first options->accuracy is replaced by the largest, to a factor of 2, for which what the
     * model chooses reaches it. Then the cheapest cells of a periodic system for that, other ws included, are
     * compared, each with the least order that is enough there: by the times of some ten steps, until 15 steps or
     * 0.2 s + 0.3 us a particle have gone by; with options->reproducible by their costs in the model. Order, cells, ws
     * and method are set; of an open system, whose cells follow the particles, only the last two at most. Where
     * particles have moved, the error may be error_moved, and no element of the virial be wrong by more than
     * virial_error (unit of energy; INFINITY: any): in few cells errors of forces may be small while what they do to a
     * virial adds up. *chosen: the measurement; all of them, no settings twice, go to tried[0..*num_tried-1], whose
     * room *num_tried is at first (32 is enough; both may be NULL). Errors: as measure; OPTION: nothing reaches it,
     * and *chosen is what came nearest. */
    GMXFMM_API gmxfmm_status gmxfmm_choose(const gmxfmm_reference* reference,
                                           gmxfmm_options*         options,
                                           double                  error_moved,
                                           double                  virial_error,
                                           gmxfmm_measurement*     chosen,
                                           gmxfmm_measurement*     tried,
                                           int*                    num_tried,
                                           char*                   message,
                                           size_t                  message_size);

    /* Frees it; NULL is allowed. */
    GMXFMM_API void gmxfmm_reference_destroy(gmxfmm_reference* reference);

    /* Text of the last error of this plan ("" if none); valid until the next call. */
    GMXFMM_API const char* gmxfmm_message(const gmxfmm_plan* plan);

    /* One line for a status, without the particulars. */
    GMXFMM_API const char* gmxfmm_status_text(gmxfmm_status status);

    /* Name of an M2L method as in the options of mdrun and gmxfmm: auto, fft, rotation, symmetric, dynamic, naive. */
    GMXFMM_API const char* gmxfmm_m2l_name(gmxfmm_m2l m2l);

    /* Frees the plan; NULL is allowed. */
    GMXFMM_API void gmxfmm_destroy(gmxfmm_plan* plan);

#ifdef __cplusplus
}
#endif

#endif
