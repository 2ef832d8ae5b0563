"""When kernels ran, as timeline.c records them."""
import subprocess


def records(path):
    """(start, end, device, stream, name) in order of their start, in ns."""
    rows = []
    with open(path) as lines:
        for line in lines:
            start, end, device, stream, name = line.split(maxsplit=4)
            rows.append((int(start), int(end), int(device), int(stream), name.strip()))
    names = sorted({row[4] for row in rows})
    plain = subprocess.run(["c++filt"], input="\n".join(names), text=True, capture_output=True, check=True).stdout.splitlines()
    short = {name: short_name(text) for name, text in zip(names, plain)}
    return sorted((start, end, device, stream, short[name]) for start, end, device, stream, name in rows)


def short_name(text):
    """The name of a kernel without its arguments, its namespaces and the return type of a template."""
    text = text.split("(anonymous namespace)::")[-1].split("(", 1)[0]
    head, _, arguments = text.partition("<")
    head = head.split()[-1].split("::")[-1] if head else head
    return f"{head}<{arguments}" if arguments else head
