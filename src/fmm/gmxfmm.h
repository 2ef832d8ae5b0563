/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gmxfmm computes Coulomb energies, forces and the virial of point charges and dipoles by the fast multipole method.
 *
 *   positions  x[3*i+d], any unit of length (GROMACS: nm); boxes are row vectors a, b, c
 *   charges    q[i], any unit of charge (GROMACS: e)
 *   potential  phi_i = f * sum_j q_j / r_ij over all particles and periodic images, less excluded pairs
 *   field      E_i = -grad phi_i;  force F_i = q_i E_i
 *   energy     1/2 sum_i q_i phi_i, in two parts: near (pairs in near cells) and far (all the rest)
 *   virial     Xi = -1/2 sum_pairs r_ij (x) F_ij, row-major 3x3; tr Xi = -E/2
 *   f          options.prefactor, multiplied once, on output
 *
 * Particles may have point dipoles mu[3*i+d] beside their charges (gmxfmm_set_dipoles; Stone 2013, chapter 3):
 *
 *   potential  phi_i has + f * sum_j mu_j . r_ij / r_ij^3, r_ij from j to i
 *   gradient   G_ab = d E_b / d x_a at a particle, symmetric; its trace is 0, or -4 pi f Q / V with net charge Q
 *   force      F_i = q_i E_i + G mu_i
 *   torque     T_i = mu_i x E_i
 *   energy     1/2 sum_i (q_i phi_i - mu_i . E_i)
 *   virial     as above, half the derivative of the energy by x_b += x_a strain_ab, dipoles kept. It is not symmetric:
 *              Xi_xy - Xi_yx = 1/2 sum_i T_z, and so on in turn. Its trace is not -E/2
 *
 * A periodic system with a net charge has a uniform neutralising background. Any vectors of its lattice are a box.
 *
 * The calls in their order: default_options, create, set_charges, perhaps set_exclusions, then again and again one
 * assign and several executes, and destroy. Call set_box whenever the box has changed. A plan for a GPU takes the same
 * calls, with arrays of the host or the device. It also has calls on a stream, which do not wait: enqueue,
 * enqueue_along, enqueue_assign, enqueue_box, enqueue_charges. Only create, set_*, assign, enqueue_box and the first
 * enqueue_along allocate memory. Every call returns a status. The plan keeps its text (gmxfmm_message). There is no
 * global state: several plans may be used at once, each by one thread at a time.
 *
 * gmxfmm_create chooses settings by a model of liquids. gmxfmm_create_measured of gmxfmm_measure.h chooses by errors
 * measured on the system. gmxfmm_create_parallel of gmxfmm_parallel.h makes plans on several ranks.
 *
 * Structures that may grow begin with their size, which the program sets to sizeof. It sets all else to zero.
 */
#ifndef GMXFMM_H
#define GMXFMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#    define GMXFMM_API extern "C" __attribute__((visibility("default")))
#else
#    define GMXFMM_API __attribute__((visibility("default")))
#endif

#define GMXFMM_VERSION "0.1.0" /* of this header; gmxfmm_version() is the library's */
#define GMXFMM_VERSION_MAJOR 0
#define GMXFMM_VERSION_MINOR 1
#define GMXFMM_VERSION_PATCH 0

#define GMXFMM_MAX_ORDER 40        /* largest expansion order in double precision */
#define GMXFMM_MAX_ORDER_SINGLE 20 /* and in single precision */
#define GMXFMM_MAX_DEGREE 20       /* largest degree of interpolation of the treecode */
#define GMXFMM_MAX_DEVICES 8       /* most GPUs that share a step */

#define GMXFMM_AUTO (-1) /* value of an option that the library chooses */

typedef struct gmxfmm_plan gmxfmm_plan;

typedef enum
{
    GMXFMM_OK = 0,
    GMXFMM_ERROR_NULL,        /* a required pointer is NULL */
    GMXFMM_ERROR_OPTION,      /* an option is out of its range, or two of them contradict each other */
    GMXFMM_ERROR_BOX,         /* box not finite, or flat */
    GMXFMM_ERROR_CHARGE,      /* a charge is not finite */
    GMXFMM_ERROR_EXCLUSION,   /* exclusion index out of range, list not sorted into rows, or not symmetric */
    GMXFMM_ERROR_POSITION,    /* a position is not finite */
    GMXFMM_ERROR_COINCIDENT,  /* two charges that do not exclude each other stand at one place */
    GMXFMM_ERROR_ORDER,       /* calls in the wrong order: execute before assign, assign before set_charges */
    GMXFMM_ERROR_UNSUPPORTED, /* valid, but not offered by this build or this path */
    GMXFMM_ERROR_MEMORY,      /* allocation failed */
    GMXFMM_ERROR_DEVICE,      /* a device or its runtime failed */
    GMXFMM_ERROR_COMM,        /* a communicator failed (gmxfmm_parallel.h) */
    GMXFMM_ERROR_LEFT,        /* particles have left the cells that they were assigned to: assign again */
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
    GMXFMM_TREECODE,   /* barycentric Lagrange treecode, open boundary: Vaughn, Wilson & Krasny 2020 */
    GMXFMM_METHOD_AUTO /* the faster of the two, as gmxfmm_create_measured measures; gmxfmm_info tells which */
} gmxfmm_method;

typedef enum
{
    GMXFMM_COULOMB = 0, /* 1/r */
    GMXFMM_YUKAWA       /* exp(-kappa r)/r (treecode) */
} gmxfmm_kernel;

typedef enum
{
    GMXFMM_PARTICLE = 0, /* batches of targets with clusters of sources, O(N log N) */
    GMXFMM_DUAL          /* clusters with clusters: faster at moderate accuracies, O(N) */
} gmxfmm_traversal;

/* What a step does about particles that have left the cells that they were assigned to. */
typedef enum
{
    GMXFMM_CHECK_ERROR = 0, /* fails, where errors may be more than twice what was asked */
    GMXFMM_CHECK_REPORT,    /* says how far the worst one is outside */
    GMXFMM_CHECK_OFF        /* does not look */
} gmxfmm_check;

/* All options; gmxfmm_default_options() fills in the defaults given in brackets; [auto] is GMXFMM_AUTO. */
typedef struct
{
    size_t           size;
    double           accuracy;    /* [4e-4] largest relative RMS force error, 1e-12..0.1; automatic options follow it */
    gmxfmm_boundary  boundary;    /* [TINFOIL] */
    gmxfmm_precision precision;   /* [SINGLE] arithmetic of the step (lattice sums are double always) */
    gmxfmm_precision array_type;  /* [DOUBLE] of the caller's positions, charges, potentials, fields and forces */
    double           prefactor;   /* [1] f, e.g. 138.935458 / epsilon_r in GROMACS units; not 0 */
    gmxfmm_device    device;      /* [CPU] */
    int              device_id;   /* [0] number of the GPU, as the CUDA runtime counts them */
    int              num_threads; /* [auto] OpenMP threads; automatic: up to omp_get_max_threads(), 1 in a fork */
    int              reproducible; /* [0] 1: the same bits in every run, whatever boxes and positions came before */
    const char*      cache_dir; /* [NULL] folder for kernels that a GPU's plan compiles, made if need be; NULL: none */
    gmxfmm_method    method;    /* [FMM] */

    /* Options of the FMM alone. */
    int        order;      /* [auto] expansion order p, 0..20 (double precision: 40) */
    int        grid[3];    /* [auto] cells along each box vector; of a periodic octree leaves, multiples of 2^depth */
    int        depth;      /* [auto] of an octree, 1..9; automatic with a grid: as many levels as that allows */
    int        separation; /* [auto] ws, layers of near cells, 1 or 2 */
    gmxfmm_m2l m2l;        /* [AUTO] way through the far field */
    int        m2l_to_parent; /* [0] 1: M2L from far cells of the interaction list to the target's parent (octree) */
    int        m2l_truncate; /* [auto] each translation to the order that its distance needs (octree): 0 never, 1 by the
                              * mean square of its error, 2 by its bound (Gumerov & Duraiswami 2008, eq. 24) */
    int vertical_rotation;   /* [0] 1: M2M and L2L by rotation, too; slower, for comparison (octree) */

    /* Options of the treecode alone. */
    gmxfmm_kernel    kernel;    /* [COULOMB] */
    double           kappa;     /* [0] inverse length of the Yukawa kernel, 0..1e100 */
    double           theta;     /* [auto] clusters are far whose radii add up to less than theta times their distance */
    int              degree;    /* [auto] of interpolation, 1..20 */
    int              leaf;      /* [auto] most particles in a leaf and targets in a batch, >= 1 */
    gmxfmm_traversal traversal; /* [PARTICLE] */

    /* Options of the FMM that came later. */
    double min_distance; /* [0] nearer pairs have the potential of this distance and no force, for programs that soften
                          * them. It has to be less than gmxfmm_info.near_range; cells of open systems are made so */
    int pairs_beside;    /* [0] 1: pair kernels of the program share the GPU with a step, and take as long as the near
                          * field. create_measured then counts the near field twice. The first of several GPUs gets
                          * less of it */
    int num_devices;     /* [0] number of GPUs of this process that share a step, 1..8; 0: device_id alone */
    int devices[8];      /* their numbers. The first, in place of device_id, has the plan's arrays and the output. One
                          * that cannot reach its memory is left out (gmxfmm_info.devices_note). A number that comes
                          * twice makes two parts */
    double shares[8]; /* [0] of the near field on each, in any unit; all 0: as measured. Bits do not depend on them */
    double far_shares[8]; /* [0] of the far field, the same; all 0: as measured or, with shares, all on the first. Only
                           * cells of one level in periodic systems, and M2L of an octree's leaves, can be shared */
    int periodic[3]; /* [0] 1: periodic along this box vector; all 0: along all, or none, as boundary says. Two of them
                      * make a slab, open along the normal of their plane. One makes a wire. Other vectors do not
                      * matter. Both have no boundary to choose, and no background: docs/theory.md (40), (45) */
    gmxfmm_check check; /* [ERROR] for particles that have left their cells since assign; beyond 100 cells always an
                         * error */
} gmxfmm_options;

/* What execute computes. NULL or 0 leaves a result out, and the time that it takes. Arrays are in the caller's order of
 * particles, or of targets if there are some. They are overwritten. */
typedef struct
{
    size_t size;
    void*  force;                              /* F, 3 n (not of targets) */
    void*  field;                              /* E, 3 n */
    void*  potential;                          /* phi, n */
    int    want_energy;                        /* fill energy_near and energy_far */
    int    want_virial;                        /* fill virial */
    double energy_near, energy_far, virial[9]; /* results */
    /* dE/dlambda = f sum dq phi of each parameter of gmxfmm_set_charge_derivatives */
    double* charge_gradient;
    double  outside; /* result, always: how far the worst particle is outside its cell, in cells. 0: none is; also with
                      * the treecode, and with check = off. INFINITY: 100 or more */
    /* Only plans with dipoles have these; dipoles of zero length give the field gradient of charges. */
    void* torque;         /* mu x E, 3 n (not of targets) */
    void* field_gradient; /* d E_b / d x_a, 6 n: xx, yy, zz, xy, xz, yz */
} gmxfmm_output;

/* Stages of a step on a device, for measurements. */
typedef enum
{
    GMXFMM_STAGE_PERMUTE = 1, /* positions into cells' order and frames */
    GMXFMM_STAGE_NEAR    = 2,
    GMXFMM_STAGE_FAR     = 4,
    GMXFMM_STAGE_OUTPUT  = 8 /* sums, and results in the caller's order */
} gmxfmm_stage;

/* What enqueue computes, in memory of the plan's device. NULL leaves a result out. */
typedef struct
{
    size_t   size;
    void*    force;       /* F, 3 n */
    void*    field;       /* E, 3 n */
    void*    potential;   /* phi, n */
    double*  energy;      /* 2: near, far */
    double*  virial;      /* 9 */
    int*     status;      /* a gmxfmm_status: OK, CHARGE, POSITION, COINCIDENT or LEFT, as execute would return */
    unsigned stages;      /* 0: all; otherwise those whose bits are set, with what earlier calls left of the others */
    void*    arrays_done; /* a cudaEvent_t that is recorded when the arrays are written; external in a graph. Energy and
                           * virial come after it, at the lowest priority */
    double* charge_gradient; /* as of gmxfmm_output; after arrays_done */
    double* outside;         /* 1, as of gmxfmm_output */
    int     add_forces;      /* 1: forces are added to those in `force`; not of the treecode */
    void*   arrays_after;    /* a cudaEvent_t that the arrays are written after; NULL: none */
    void*   torque;          /* these two as of gmxfmm_output, too */
    void*   field_gradient;
} gmxfmm_device_output;

/* What a plan does, after options and automatic choices. Times are in seconds, sums over all executes since the last
 * reset. */
typedef struct
{
    size_t           size;
    int64_t          num_particles;
    gmxfmm_method    method;
    gmxfmm_precision precision;
    gmxfmm_m2l       m2l;
    int              order, grid[3];
    int              depth;     /* -1 without an octree */
    int              num_cells; /* cells, or leaves that hold particles; 0 before assign */
    int              separation;
    int              num_near_cells;  /* cells in the near set, the cell itself included */
    double           near_particles;  /* mean number of particles in the near set */
    double           near_range;      /* every pair closer than this at assign is in the near field */
    double           predicted_error; /* a model's: relative RMS error of forces (treecode: of potential or field) */
    double           measured_error;  /* the same, by create_measured or a treecode. NAN: something else is set now, or
                                       * the extent of an open direction differs by more than a tenth */
    double      theta, pairs_per_target; /* the treecode's, known after the first assign; evaluations, mean */
    int         degree, leaf, num_clusters;
    int         num_threads;
    const char* simd;  /* level of x86-64 whose instructions compute: v2, v3, v4; "": a GPU, or one processor's */
    size_t      bytes; /* memory held by the plan */
    int64_t     num_executes, num_spectra; /* the latter: times that lattice sums were computed */
    double      time_assign, time_spectra, time_permute, time_near, time_p2m, time_l2p, time_output;
    double      time_m2l;                /* by cells: transforms and product; octree: with the lattice at the roots */
    double      time_m2m, time_l2l;      /* octree */
    double      time_charges, time_sums; /* treecode: modified charges of clusters; sums */
    int         num_devices, devices[8]; /* GPUs that share a step, at most those asked for; 0: the CPU */
    double      shares[8];               /* of the near field on each (FMM) */
    const char* devices_note;            /* devices that are not used, or not for the far field, and why; or "" */
    double      far_shares[8];           /* of the far field on each (FMM) */
    double      extent[3]; /* of particles and targets at assign along the open directions of an open system, a slab
                            * or a wire, in the order of its own axes; 0: along others (FMM) */
    int zero_forces;       /* 1: measured_error is relative to f (mean |q| / spacing)^2, the forces being zero */
} gmxfmm_info;

/* What a plan can do: bits of gmxfmm_capabilities(). */
typedef enum
{
    GMXFMM_CAN_VIRIAL         = 1,
    GMXFMM_CAN_EXCLUDE        = 2,    /* set_exclusions */
    GMXFMM_CAN_TARGETS        = 4,    /* set_targets */
    GMXFMM_CAN_ENQUEUE        = 8,    /* enqueue */
    GMXFMM_CAN_ENQUEUE_ASSIGN = 16,   /* enqueue_assign, for periodic cells of one level without targets. It ends where
                                       * other cells are near each other than at the last assign, and where particles
                                       * have left the cells of a slab */
    GMXFMM_CAN_ENQUEUE_CHARGES = 32,  /* enqueue_charges */
    GMXFMM_CAN_CHARGE_GRADIENT = 64,  /* set_charge_derivatives */
    GMXFMM_CAN_DIPOLES         = 128, /* set_dipoles */
    GMXFMM_CAN_WIDTHS          = 256  /* set_widths */
} gmxfmm_capability;

/* Version of the library, "major.minor.patch". */
GMXFMM_API const char* gmxfmm_version(void);

/* Fills *options with the defaults: its first `size` bytes, for which the program has room. NULL: does nothing. */
GMXFMM_API void gmxfmm_default_options_of_size(gmxfmm_options* options, size_t size);

static inline void gmxfmm_default_options(gmxfmm_options* options)
{
    gmxfmm_default_options_of_size(options, sizeof(*options));
}

/* What a program has to know to read an option. */
typedef struct
{
    const char* name;     /* member of gmxfmm_options */
    const char* help;     /* what it is, half a line */
    const char* standard; /* default, in words */
    const char* choices;  /* of an enum: names in its order from 0 on, | between them; NULL: a number, or three */
    double      lowest;   /* range, without GMXFMM_AUTO */
    double      highest;
} gmxfmm_option;

/* The option with this name, or NULL. All options of options.def have a range. */
GMXFMM_API const gmxfmm_option* gmxfmm_find_option(const char* name);

/* Says whether a plan can be made here for this device. OK: yes; UNSUPPORTED: not in this build; DEVICE: no device has
 * this number, or it is too old. Here and below message[message_size] gets the cause; it may be NULL. */
GMXFMM_API gmxfmm_status gmxfmm_check_device(gmxfmm_device device, int id, char* message, size_t message_size);

/* Makes a plan for about num_particles particles in box[9] (NULL with boundary OPEN). What the options leave automatic
 * is chosen from these and kept as the box changes; an open system is fitted to the particles at each assign. On
 * failure *plan is NULL. Errors: NULL, OPTION, BOX, UNSUPPORTED, MEMORY, DEVICE. */
GMXFMM_API gmxfmm_status gmxfmm_create(gmxfmm_plan**         plan,
                                       const gmxfmm_options* options,
                                       int64_t               num_particles,
                                       const double*         box,
                                       char*                 message,
                                       size_t                message_size);

/* Replaces the box. Cells move with it and particles stay in their cells. Where the box takes quite another shape, such
 * as other vectors of the same lattice, execute asks for an assign first. Another shape renews the lattice sums at the
 * next execute. Isotropic scaling costs nothing. Errors: NULL, BOX, UNSUPPORTED, MEMORY, DEVICE. */
GMXFMM_API gmxfmm_status gmxfmm_set_box(gmxfmm_plan* plan, const double* box);

/* Sets the number of particles and their charges, q[n] (copied). Clears exclusions, dipoles, widths and assignment when
 * n changes.
 * Errors: NULL, OPTION (n < 0), CHARGE, MEMORY. */
GMXFMM_API gmxfmm_status gmxfmm_set_charges(gmxfmm_plan* plan, int64_t n, const void* q);

/* Sets the excluded pairs: particle i has list[start[i]] .. list[start[i+1]-1]; start[n+1]. List a pair in both rows. A
 * particle may list itself, or a pair twice. The nearest image of a pair at assign is excluded. Errors: NULL,
 * EXCLUSION, ORDER, UNSUPPORTED, MEMORY (there are none then). */
GMXFMM_API gmxfmm_status gmxfmm_set_exclusions(gmxfmm_plan* plan, const int* start, const int* list);

/* Sets how charges depend on parameters, as in lambda dynamics. A unit of parameter k = 0..num-1 changes the charge of
 * particle index[j] by dq[j], for j = start[k] .. start[k+1]-1 (all copied). set_charges sets the charges themselves.
 * num = 0: no parameters. Cleared when n changes. Errors: NULL, OPTION (num or start falls), CHARGE (no such particle,
 * dq not finite), ORDER (there are no charges), UNSUPPORTED, MEMORY (there are none then). */
GMXFMM_API gmxfmm_status
gmxfmm_set_charge_derivatives(gmxfmm_plan* plan, int num, const int* start, const int* index, const double* dq);

/* Sets dipoles of all n particles, mu[3n] of the array type, charge times length (copied); NULL: none. set_charges
 * comes first, and keeps them while n stays. Assign anew where there were none before, and after NULL; other dipoles in
 * place of some need none. Particles of one place must exclude each other unless one has neither charge nor dipole.
 * Settings are chosen for charges, and predicted_error is theirs; measured_error becomes NAN. Errors: NULL, OPTION (n;
 * min_distance), CHARGE (not finite), ORDER (there are no charges), UNSUPPORTED (the treecode, several ranks or GPUs),
 * MEMORY, DEVICE (there are none then). */
GMXFMM_API gmxfmm_status gmxfmm_set_dipoles(gmxfmm_plan* plan, int64_t n, const void* mu);

/* Makes the charges of all n particles Gaussians of these standard deviations s, width[n] of the array type (copied);
 * 0: a point; NULL: all are points. A pair has erf(r / g) / r, g^2 = 2 (s_i^2 + s_j^2), in place of 1/r. The energy has
 * no q^2 / (2 sqrt(pi) s) of a Gaussian with itself. set_charges comes first, and keeps them while n stays. Assign
 * anew: that is the error OPTION where a width is too large for the box. Settings are chosen for point charges, and
 * errors are those of these, relative to their forces. Errors: NULL, OPTION (n; min_distance), CHARGE (negative, not
 * finite), ORDER (there are no charges), UNSUPPORTED (dipoles, a GPU, the treecode, several ranks), MEMORY (there are
 * none then). */
GMXFMM_API gmxfmm_status gmxfmm_set_widths(gmxfmm_plan* plan, int64_t n, const void* width);

/* Sets targets, places x[3n] (copied). From the next assign on potential and field are computed there and not at the
 * charges; n = 0: at the charges again. There are no forces, energies or virial then. measured_error becomes NAN, but a
 * treecode measures in its first assign, and create_measured takes targets. Errors: NULL, OPTION (n < 0), MEMORY. */
GMXFMM_API gmxfmm_status gmxfmm_set_targets(gmxfmm_plan* plan, int64_t n, const void* x);

/* Puts the particles at x[3n] into cells, until the next assign. Any periodic image of a particle will do. Errors:
 * NULL, ORDER, POSITION, UNSUPPORTED, MEMORY. */
GMXFMM_API gmxfmm_status gmxfmm_assign(gmxfmm_plan* plan, const void* x);

/* Computes what output asks for at x[3n], in any images. Particles should not have moved more than a fraction of a cell
 * since assign; output->outside says how far. Errors may then be more than twice what was asked. This is judged by the
 * measured error, or the predicted one, and by how far particles are from the centres of their cells. Such a step is
 * the error LEFT, unless options.check says otherwise. So is one with a particle half a cell outside (ws = 2: one
 * cell). Errors: NULL, OPTION, ORDER, POSITION, LEFT, COINCIDENT (found after the fact, in the results). */
GMXFMM_API gmxfmm_status gmxfmm_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output);

/* Systems that one plan serves, one after the other in arrays of the host, and their results. NULL leaves a result
 * out. */
typedef struct
{
    size_t         size;
    int64_t        num;            /* systems */
    const int64_t* start;          /* num + 1: particles of system s are start[s] .. start[s+1]-1 */
    const void*    x;              /* 3 of all particles */
    const void*    q;              /* of all particles */
    const double*  box;            /* 9 num; NULL: that of the plan, or none */
    void*          force;          /* 3 of all particles, written; so are the next four */
    void*          field;          /* the same */
    void*          potential;      /* of all particles */
    double*        energy;         /* num */
    double*        virial;         /* 9 num */
    int64_t        done;           /* result, always: systems that were computed */
    const void*    mu;             /* dipoles, 3 of all particles; NULL: those of the plan, or none */
    void*          torque;         /* as of gmxfmm_output, 3 of all particles */
    void*          field_gradient; /* the same, 6 of all particles */
} gmxfmm_systems;

/* Does set_charges, set_box, set_dipoles, assign and execute for each system. The plan is that of the last one then.
 * Errors: those of the five, for system `done`; OPTION: num < 0, or the plan has targets, or excluded pairs, charge
 * derivatives or, without mu, dipoles of another number of particles. */
GMXFMM_API gmxfmm_status gmxfmm_execute_systems(gmxfmm_plan* plan, gmxfmm_systems* systems);

/* A way of positions u and of charges w, and derivatives along it. Arrays are of the array type. */
typedef struct
{
    size_t      size;
    const void* u;         /* 3 n */
    const void* w;         /* n */
    void*       force;     /* 3 n: less the derivatives of `energy` by positions */
    void*       potential; /* n: its derivatives by charges */
    void*       felt;      /* 3 n: F of the charges; NULL: not wanted */
    double      energy;    /* result: sum of w phi - q u . E, the derivative of the energy along the way */
    double      outside;   /* result: as of gmxfmm_output */
} gmxfmm_along;

/* Second derivatives of the energy of the charges, at x[3n], times a way: THEORY (52). They are those of what execute
 * computes, in two to three times its time. It assigns, and wants a plan that takes dipoles and has none: it has none
 * afterwards and is not assigned. Errors: those of set_dipoles, assign and execute; NULL, MEMORY; OPTION (the plan has
 * dipoles or targets). */
GMXFMM_API gmxfmm_status gmxfmm_execute_along(gmxfmm_plan* plan, const void* x, gmxfmm_along* along);

/* Puts a step of a plan with device = CUDA on the caller's stream (a cudaStream_t; NULL: the legacy default stream).
 * x[3n] and what output points to are memory of the device. The call waits for nothing and allocates nothing. The
 * stream may be capturing a graph, after one call outside a capture. A plan does one step at a time: put the next one
 * on the same stream, or behind an event. Errors: NULL, OPTION, ORDER, UNSUPPORTED, DEVICE. Errors in the data come in
 * output->status. See docs/gpu.md. */
GMXFMM_API gmxfmm_status gmxfmm_enqueue(gmxfmm_plan*                plan,
                                        const void*                 x,
                                        const gmxfmm_device_output* output,
                                        void*                       stream);

/* As gmxfmm_along, all in memory of the plan's device. */
typedef struct
{
    size_t      size;
    const void* u;         /* 3 n */
    const void* w;         /* n */
    void*       force;     /* 3 n */
    void*       potential; /* n */
    void*       felt;      /* 3 n; NULL: not wanted, and so of the next three */
    double*     energy;    /* 1 */
    int*        status;    /* as of gmxfmm_device_output; CHARGE also where a way is not finite */
    double*     outside;   /* 1 */
} gmxfmm_device_along;

/* As gmxfmm_execute_along, on the caller's stream of one GPU. It does not assign: charges and assignment stay. The
 * first call after set_charges with another n allocates and waits. Otherwise it is as gmxfmm_enqueue. Errors: those of
 * set_dipoles and enqueue; OPTION as there; ORDER also in the midst of an assignment in parts. */
GMXFMM_API gmxfmm_status gmxfmm_enqueue_along(gmxfmm_plan*               plan,
                                              const void*                x,
                                              const gmxfmm_device_along* along,
                                              void*                      stream);

/* As gmxfmm_assign, on the caller's stream. Steps put there before use the old cells. Later ones use the new cells,
 * also those of graphs that were captured before. A position that no cell can hold comes as POSITION in output->status
 * of the steps that follow. The cells of a slab are those of the last gmxfmm_assign. Its outer cells hold particles
 * that leave it. Where one is a sixteenth of a cell outside, the next call returns ORDER. That call waits until this is
 * known, and cannot be captured. Where one is a whole cell outside, steps return POSITION. Errors: NULL, ORDER,
 * UNSUPPORTED, DEVICE. ORDER: gmxfmm_assign must come first, once. It must come again after set_charges with another n,
 * set_exclusions and set_targets. So it must in a box in which other cells are near each other, and after particles
 * have left a slab. */
GMXFMM_API gmxfmm_status gmxfmm_enqueue_assign(gmxfmm_plan* plan, const void* x, void* stream);

/* Parts of an assignment, most of which runs beside steps with the old cells. */
typedef enum
{
    GMXFMM_ASSIGN_BEGIN, /* finds the cells of x, on the stream of the steps; x may be overwritten afterwards */
    GMXFMM_ASSIGN_SORT,  /* sorts, on any stream, behind an event after BEGIN */
    GMXFMM_ASSIGN_END    /* gives later steps the new cells, on their stream, behind an event after SORT */
} gmxfmm_assign_part;

/* As gmxfmm_enqueue_assign, in parts that come in this order. Steps, new charges and boxes may come between them, but
 * no other assignment. Only BEGIN uses x; it may allocate and is not for graphs. Errors: as there; ORDER: BEGIN must
 * come first; OPTION: no such part. */
GMXFMM_API gmxfmm_status gmxfmm_enqueue_assign_part(gmxfmm_plan*       plan,
                                                    gmxfmm_assign_part part,
                                                    const void*        x,
                                                    void*              stream);

/* As gmxfmm_set_box. The lattice sums of the new box begin at once, behind what is in the stream. Captured graphs have
 * the new box, too, unless gmxfmm_graph_version changes. Errors: as gmxfmm_set_box. */
GMXFMM_API gmxfmm_status gmxfmm_enqueue_box(gmxfmm_plan* plan, const double* box, void* stream);

/* Sets charges on the caller's stream, without a new assignment: q[count] of the array type, of particles index[count],
 * or of all (index NULL, count n). Both are on the device. Later steps have them, also those of graphs. A charge that
 * is not finite, or an index that no particle has, comes as CHARGE in output->status until charges are set again.
 * Errors: NULL, OPTION (count), ORDER (set_charges first), UNSUPPORTED, DEVICE. */
GMXFMM_API gmxfmm_status
gmxfmm_enqueue_charges(gmxfmm_plan* plan, int64_t count, const int* index, const void* q, void* stream);

/* Bits of gmxfmm_capability: what this plan can do as it is now; 0 for NULL. With a slab it waits until an assignment
 * that was enqueued has found the cells of particles. */
GMXFMM_API unsigned gmxfmm_capabilities(const gmxfmm_plan* plan);

/* As long as this is the same, a captured graph of gmxfmm_enqueue, or of gmxfmm_enqueue_assign while the plan can do
 * that, does what the call would do. 0 for NULL. */
GMXFMM_API int64_t gmxfmm_graph_version(const gmxfmm_plan* plan);

/* Parameters in use, predicted error, memory and times. Errors: NULL, OPTION (info->size). */
GMXFMM_API gmxfmm_status gmxfmm_get_info(const gmxfmm_plan* plan, gmxfmm_info* info);

/* Sets the times and counts of gmxfmm_info to zero. */
GMXFMM_API void gmxfmm_reset_times(gmxfmm_plan* plan);

/* Measures the time in seconds of these stages of a step for forces, as a mean of `repeats`. `stages` has bits of
 * gmxfmm_stage; 0: all. The call waits for what is in the stream. It needs an assign before, and x[3n] on the device.
 * Errors: as gmxfmm_enqueue. */
GMXFMM_API gmxfmm_status
gmxfmm_time_stages(gmxfmm_plan* plan, const void* x, unsigned stages, int repeats, void* stream, double* seconds);

/* Sets the part of the near field that the first of several devices has: `share`, 0 to below 1. An assignment must
 * follow. The parts of the others keep their proportions. This is for callers who have work of their own on the first
 * device and time steps. Bits do not depend on it. Make graphs of steps and assignments anew. Errors: NULL, OPTION,
 * UNSUPPORTED (one device), ORDER (no particles were assigned). */
GMXFMM_API gmxfmm_status gmxfmm_set_first_share(gmxfmm_plan* plan, double share);

/* Text of the last error of this plan ("" if none); valid until the next call. */
GMXFMM_API const char* gmxfmm_message(const gmxfmm_plan* plan);

/* One line for a status, without the particulars. */
GMXFMM_API const char* gmxfmm_status_text(gmxfmm_status status);

/* Name of an M2L method as in the options of mdrun and gmxfmm: auto, fft, rotation, symmetric, dynamic, naive. */
GMXFMM_API const char* gmxfmm_m2l_name(gmxfmm_m2l m2l);

/* Frees the plan; NULL is allowed. */
GMXFMM_API void gmxfmm_destroy(gmxfmm_plan* plan);

#endif
