#!/usr/bin/env bash
# The Python package on the ranks of mpi4py, if it is there and of the MPI that is asked for. 77: skipped.
#   mpi_python.sh PYTHON PROGRAM NUMBER openmpi|mpich MPIRUN...
set -euo pipefail
python=$1 program=$2 number=$3 mpi=$4
shift 4
export MPI4PY_MPIABI=$mpi # which one it looks for, where it can choose
library=$("$python" -c 'from mpi4py import MPI; import numpy; print(MPI.Get_library_version().strip(chr(0)).lower())' 2>/dev/null) || { echo "SKIPPED: no mpi4py or numpy" && exit 77; }
case $mpi in openmpi) name="open mpi" ;; *) name=mpich ;; esac
[[ $library == *$name* ]] || { echo "SKIPPED: mpi4py is of another MPI" && exit 77; }
exec "$@" -n "$number" "$python" "$program"
