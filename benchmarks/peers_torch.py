# SPDX-License-Identifier: LGPL-2.1-or-later
"""What peers.py measures with tensors of the CPU or of a GPU: torch-pme, nvalchemi-toolkit-ops, a direct sum, and this library.

Each function takes a System and settings and gives calls: "step", of which the forces come back, with the energy computed; and "training",
the derivatives by positions and charges of mean force² + mean (energy of a system / its charges)². Lists of neighbours, plans and whatever
depends on boxes alone are made before.
"""
import numpy
import torch

FAR = torch.tensor([1.0, 0.0, 0.0])  # of pairs that fill tables up: any distance but 0


class System:
    """x (charges, 3), q (charges), edges (systems, 3) or None: open, start (systems + 1): where systems begin; of these, tensors."""

    def __init__(self, x, q, edges, start, device="cpu", single=False):
        self.edges, self.start, self.sizes, self.device = edges, [int(one) for one in start], numpy.diff(start), torch.device(device)
        self.dtype = torch.float32 if single else torch.float64
        self.x, self.q = self.tensor(x), self.tensor(q)
        self.alone = len(self.sizes) == 1
        self.of = torch.repeat_interleave(torch.arange(len(self.sizes)), torch.tensor(self.sizes)).to(self.device)  # system of each charge
        self.cells = None if edges is None else self.tensor(numpy.stack([numpy.diag(one) for one in edges]))

    def tensor(self, array):
        return torch.as_tensor(array, dtype=self.dtype, device=self.device)

    def padded(self):
        """Table (systems, most charges) of charges, 0 where there is none, and which are there."""
        most = int(self.sizes.max())
        table = torch.tensor(numpy.stack([numpy.arange(most) + begin for begin in self.start[:-1]]), device=self.device)
        there = torch.arange(most, device=self.device) < torch.tensor(self.sizes, device=self.device)[:, None]
        return table * there, there


def neighbours(system, cutoff, half):
    """Pairs (2, pairs), where those of each charge begin, and shifts in edges; of nvalchemi-toolkit-ops, else of vesin by the CPU."""
    try:
        from nvalchemiops.torch.neighbors import neighbor_list
    except ImportError:
        neighbor_list = None
    if neighbor_list is not None and (system.device.type == "cuda" or not half):
        return neighbor_list(*of_alchemi(system, cutoff), return_neighbor_list=True, half_fill=half, **room(system, cutoff))
    import vesin
    parts = []
    for begin, end, edges in zip(system.start, system.start[1:], system.edges):
        i, j, shift = vesin.NeighborList(cutoff=cutoff, full_list=not half).compute(system.x[begin:end].cpu().double().numpy(), numpy.diag(edges), True, "ijS")
        parts.append((numpy.stack((i, j)).astype(numpy.int64) + begin, shift))
    pairs, shifts = numpy.concatenate([part[0] for part in parts], axis=1), numpy.concatenate([part[1] for part in parts])
    return torch.tensor(pairs, device=system.device), None, torch.tensor(shifts, device=system.device)


def of_alchemi(system, cutoff):
    return system.x, cutoff, system.cells, torch.ones((len(system.sizes), 3), dtype=torch.bool, device=system.device)


def room(system, cutoff):
    """Of neighbours: twice as many as there are at density 1."""
    several = {} if system.alone else {"batch_idx": system.of.int(), "batch_ptr": torch.tensor(system.start, dtype=torch.int32, device=system.device)}
    return {"max_neighbors": 32 + int(2 * 4 / 3 * numpy.pi * cutoff**3), **several}


def calls(system, energies):
    """Of a differentiable function that gives the energies of systems."""
    sizes = system.tensor(system.sizes)

    def step():
        at = system.x.detach().requires_grad_()
        return -torch.autograd.grad(energies(at, system.q).sum(), at)[0]

    def training():
        at, charges = system.x.detach().requires_grad_(), system.q.detach().requires_grad_()
        energy = energies(at, charges)
        slope, = torch.autograd.grad(energy.sum(), at, create_graph=True)
        return torch.autograd.grad((slope**2).mean() + ((energy / sizes)**2).mean(), (at, charges))
    return {"step": step, "training": training}


def torch_pme(system, cutoff, alpha_cutoff, mesh_over_smearing=None, wave_over_smearing=None):
    """P3M, of its calculators for large systems the one with the least error, or Ewald's sums, by vmap for many systems, as it has it."""
    import torchpme
    from torchpme.lib import compute_batched_kvectors
    smearing = cutoff / alpha_cutoff / 2**0.5
    potential = torchpme.CoulombPotential(smearing)
    pairs, _, shifts = neighbours(system, cutoff, True)
    pairs = pairs.long()
    moves = torch.einsum("pi,pij->pj", shifts.to(system.dtype), system.cells[system.of[pairs[0]]])
    if mesh_over_smearing:
        of = torchpme.P3MCalculator(potential, mesh_spacing=smearing * mesh_over_smearing, interpolation_nodes=5).to(system.device, system.dtype)
        counts = torch.bincount(system.of[pairs[0]], minlength=len(system.sizes)).tolist()
        local = (pairs - torch.tensor(system.start, device=system.device)[system.of[pairs[0]]]).T.contiguous()

        def energies(x, q):
            distances = (x[pairs[1]] - x[pairs[0]] + moves).norm(dim=1)
            parts = zip(q[:, None].split(list(system.sizes)), system.cells, x.split(list(system.sizes)), local.split(counts), distances.split(counts))
            return torch.stack([(charges * of(charges, *rest)).sum() for charges, *rest in parts])
        return calls(system, energies)

    of = torchpme.EwaldCalculator(potential, lr_wavelength=smearing * wave_over_smearing).to(system.device, system.dtype)
    waves = compute_batched_kvectors(lr_wavelength=smearing * wave_over_smearing, cells=system.cells)
    table, there = system.padded()
    if waves[..., 0].numel() * table.shape[1] > (1e9 if system.device.type == "cuda" else 1e8):
        raise ValueError("the sums over waves want too much memory")
    order = torch.argsort(system.of[pairs[0]], stable=True)
    counts = torch.bincount(system.of[pairs[0]], minlength=len(system.sizes))
    rank = torch.arange(int(counts.max()), device=system.device)
    real = rank < counts[:, None]
    which = order[((torch.cumsum(counts, 0) - counts)[:, None] + rank) * real]
    local = (pairs - torch.tensor(system.start, device=system.device)[system.of[pairs[0]]]).T[which] * real[..., None]
    moved = torch.where(real[..., None], moves[which], FAR.to(moves) * cutoff / 2)

    def one(x, q, cell, pairs, moves, waves, there, real):
        distances = (x[pairs[:, 1]] - x[pairs[:, 0]] + moves).norm(dim=1)
        return (q * of(q, cell, x, pairs, distances, node_mask=there, pair_mask=real, kvectors=waves)).sum()

    def energies(x, q):
        return torch.vmap(one)(x[table], (q[table] * there)[..., None], system.cells, local, moved, waves, there, real)
    return calls(system, energies)


def nvalchemi(system, cutoff, alpha_cutoff, mesh_over_smearing=None, wave_over_smearing=None, spline_order=5, matrix=False):
    """PME, or Ewald's sums; what depends on the cells alone is computed before, as its documentation advises."""
    from nvalchemiops.torch.interactions.electrostatics import ewald_summation, generate_k_vectors_pme, particle_mesh_ewald
    from nvalchemiops.torch.neighbors import neighbor_list
    alpha = alpha_cutoff / cutoff
    if matrix:
        found = neighbor_list(*of_alchemi(system, cutoff), **room(system, cutoff))
        given = {"neighbor_matrix": found[0], "neighbor_matrix_shifts": found[2], "mask_value": len(system.x)}
    else:
        given = dict(zip(("neighbor_list", "neighbor_ptr", "neighbor_shifts"), neighbours(system, cutoff, False)))
    given.update(alpha=alpha, energy_reduction="system", **({} if system.alone else {"batch_idx": system.of.int()}))
    if mesh_over_smearing:
        spacing = mesh_over_smearing / alpha / 2**0.5
        mesh = [next(n for n in range(max(8, int(numpy.ceil(edge / spacing))), 10**5) if 210**20 % n == 0) for edge in system.edges.max(axis=0)]
        mesh = tuple(mesh)
        cells = system.cells[0] if system.alone else system.cells
        waves, squares = generate_k_vectors_pme(cells, mesh)
        given.update(mesh_dimensions=mesh, spline_order=spline_order, k_vectors=waves, k_squared=squares,
                     cell_inv_t=torch.linalg.inv(system.cells).transpose(1, 2).contiguous(), volume=torch.linalg.det(system.cells).abs())
        call = particle_mesh_ewald
    else:
        given.update(k_cutoff=2 * numpy.pi * alpha * 2**0.5 / wave_over_smearing)
        call = ewald_summation
    return calls(system, lambda x, q: call(x, q, system.cells, **given))


def direct(system):
    """All pairs of open systems, in blocks of rows that leave room."""
    table, there = system.padded()
    n = table.shape[1]
    same = None if system.alone else ~(there[:, :, None] & there[:, None])
    rows = torch.arange(n, device=system.device).split(max(1, (2**26 if system.device.type == "cuda" else 2**22) // table.numel()))
    weight = system.tensor(system.sizes)

    def of_rows(x, q, some):
        x, q = x[table], q[table] * there
        d = x[:, some, None] - x[:, None]
        none = (some[:, None] == torch.arange(n, device=system.device))[None]
        none = none if same is None else none | same[:, some]
        return (torch.einsum("si,sj,sij->s", q[:, some], q, torch.where(none, 0, ((d * d).sum(dim=-1) + none.to(d)).rsqrt()))) / 2

    if len(rows) == 1:
        return calls(system, lambda x, q: of_rows(x, q, rows[0]))

    def step():
        at = system.x.detach().requires_grad_()
        return -sum(torch.autograd.grad(of_rows(at, system.q, some).sum(), at)[0] for some in rows)

    def training():
        """The derivatives of the loss by forces and energies first, which are not kept, then those of each block."""
        at, charges, energy, slope = system.x.detach().requires_grad_(), system.q.detach().requires_grad_(), 0, 0
        for some in rows:
            part = of_rows(at, charges, some)
            slope, energy = slope + torch.autograd.grad(part.sum(), at)[0], energy + part.detach()
        way, by_energy, found = 2 * slope / slope.numel(), 2 * energy / weight**2 / len(weight), (0, 0)
        for some in rows:
            part = of_rows(at, charges, some)
            by_x, = torch.autograd.grad(part.sum(), at, create_graph=True)
            new = torch.autograd.grad((by_x * way).sum() + (part * by_energy).sum(), (at, charges))
            found = [old + more for old, more in zip(found, new)]
        return found
    return {"step": step, "training": training}


def ours(system, accuracy):
    """A plan, or a batch with room for plans of all sizes."""
    import gmxfmm
    from gmxfmm.torch import Coulomb
    x, q = (system.x, system.q) if system.device.type == "cuda" else (system.x.numpy(), system.q.numpy())
    cells = None if system.edges is None else torch.tensor(numpy.stack([numpy.diag(one) for one in system.edges]))  # wanted on the host
    function = Coulomb(accuracy=accuracy, max_plans=128)
    if system.alone:
        plan = gmxfmm.Plan(x, q, None if cells is None else system.edges[0], accuracy=accuracy)
        return {"step": lambda: plan.step(x).forces,
                "training": calls(system, lambda x, q: function(x, q, None if cells is None else cells[0]))["training"]}
    batch = gmxfmm.Batch(accuracy=accuracy, max_plans=128)
    return {"step": lambda: batch.step(x, q, None if cells is None else cells.numpy(), system.start).forces,
            "training": calls(system, lambda x, q: function(x, q, cells, system.start))["training"]}


def ewald(system, which):
    """Forces on some ions of the first of the systems by Ewald's sums whose terms beyond are below 1e-12 of those next to an ion."""
    x, q, edges = system.x[:system.start[1]].double(), system.q[:system.start[1]].double(), torch.tensor(system.edges[0], device=system.device)
    alpha, most = 10.5 / edges.min(), 18  # erfc(5.25) and exp(-(pi most / (alpha edge))^2)
    most = [int(numpy.ceil(most * edge / system.edges[0].min())) for edge in system.edges[0]]
    m = torch.cartesian_prod(*[torch.arange(-one, one + 1, dtype=torch.float64, device=system.device) for one in most])
    k = 2 * torch.pi * m / edges
    of = torch.tensor([4.0 * max(most)**2, 2.0 * max(most), 1.0], dtype=torch.float64, device=system.device)
    k = k[(m @ of > 0) & ((k * k).sum(dim=1) <= (2 * torch.pi * 18 / edges.min())**2)]  # one of k and -k
    k2 = (k * k).sum(dim=1)
    sums = sum(torch.exp(1j * (at @ k.T)).T @ charges.to(torch.complex128) for at, charges in zip(x.split(4096), q.split(4096)))
    forces = []
    for i in which:
        d = x[i] - x
        d -= edges * torch.round(d / edges)
        r = d.norm(dim=1)
        r[i] = torch.inf
        pair = q * (torch.erfc(alpha * r) / r + 2 * alpha / torch.pi**0.5 * torch.exp(-(alpha * r)**2)) / r**2
        weight = 8 * torch.pi / edges.prod() * torch.exp(-k2 / (4 * alpha**2)) / k2 * (torch.exp(1j * (k @ x[i])) * sums.conj()).imag
        forces.append(q[i] * (pair @ d + weight @ k))
    return torch.stack(forces)
