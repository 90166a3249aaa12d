#!/usr/bin/env bash
# The batch on a real SLURM: munge, slurmctld and slurmd on 127.0.0.1, set up for this run and stopped after it.
#
# By hand, as root, in a container or a virtual machine, after
#     apt-get install --yes --no-install-recommends munge slurmctld slurmd slurm-client
#
#     tests/cluster/run.sh              # four smoke notebooks, one of them killed half way
#     tests/cluster/run.sh all          # all of them
#     tests/cluster/run.sh CLAIM ...    # these; the first, which must train something, is killed
#
# Neither /etc nor the figures of this checkout are touched: configuration, key, sockets, logs and records lie in a folder
# of their own, which stays for a look where something went wrong.
set -euo pipefail

root="$(cd "$(dirname "$0")/../.." && pwd)"
profile=smoke
victim=guo2024-thm32-sgd # trains for some seconds, in several runs that are saved one by one
claims=("$victim" frei2019-width-requirement-table guo2024-cor33-alpha-optimum noy2021-tab1-comparison)
if [ "${1:-}" = all ]; then
    claims=()
elif [ $# -gt 0 ]; then
    claims=("$@")
    victim="$1"
fi
for command in munged slurmctld slurmd sbatch make; do
    command -v "$command" > /dev/null || { echo "no $command here: see the head of $0" >&2 && exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "SLURM's daemons start jobs as other users: run this as root" >&2 && exit 1; }

work="$(mktemp -d "${TMPDIR:-/tmp}/overparam-slurm-XXXXXX")"
chmod 755 "$work"
export SLURM_CONF="$work/slurm.conf" OVERPARAM_FIGURES="$work/figures" COLUMNS=200
started=() # processes of ours, the last one first
stop() {
    local process
    for process in "${started[@]}"; do
        kill "$process" 2> /dev/null || true
        wait "$process" || true
    done
}
trap stop EXIT

say() { printf '\n== %s\n' "$*"; }

# Wait until a command succeeds, for an hour at most.
until_true() {
    for _ in $(seq 7200); do
        "$@" > /dev/null 2>&1 && return
        sleep 0.5
    done
    echo "gave up waiting for: $*; see $work" >&2 && exit 1
}

configure() {
    local cores memory
    cores="$(getconf _NPROCESSORS_ONLN)"
    memory="$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)"
    mkdir "$work"/{state,spool,gpus,bin}
    touch "$work"/gpus/{0,1} # stand-ins: SLURM counts and assigns them, and nobody opens them
    head -c 1024 /dev/urandom > "$work/key" && chmod 400 "$work/key"
    cat > "$work/slurm.conf" << END
ClusterName=overparam
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
AuthInfo=socket=$work/munge
SlurmctldPort=16817
SlurmdPort=16818
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
JobCompType=jobcomp/filetxt
JobCompLoc=$work/completed
MinJobAge=86400
ReturnToService=2
GresTypes=gpu
NodeName=node NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$cores RealMemory=$memory Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes=node Default=YES MaxTime=INFINITE
END
    echo "Name=gpu File=$work/gpus/[0-1]" > "$work/gres.conf"
    echo "CgroupAutomount=no" > "$work/cgroup.conf"
    # Inside a job the plug-in drops SLURM's variables, this one too.
    printf '#!/bin/sh\nSLURM_CONF="%s" exec "%s" "$@"\n' "$SLURM_CONF" "$(command -v srun)" > "$work/bin/srun"
    chmod 755 "$work/bin/srun"
    export PATH="$work/bin:$PATH"
}

start() {
    munged --foreground --force --key-file="$work/key" --socket="$work/munge" --pid-file="$work/munged.pid" \
        --log-file="$work/munged.log" --seed-file="$work/seed" &
    started=($! "${started[@]}")
    until_true test -S "$work/munge"
    slurmctld -D &
    started=($! "${started[@]}")
    until_true scontrol ping
    slurmd -D -N node &
    started=($! "${started[@]}")
    until_true sh -c 'sinfo --noheader --format %T | grep -q idle'
}

figures() {
    make --no-print-directory -C "$root" figures PROFILE=$profile EXECUTOR=slurm CLAIMS="${claims[*]}" ARGS="$*"
}

job() { squeue --noheader --states=RUNNING --format='%i %k' | awk -v claim="$victim" '$2 ~ claim "$" { print $1 }'; }

saved() { [ -n "$(ls "$root/logs/checkpoints/$profile/$victim" 2> /dev/null)" ]; }

configure
start > "$work/daemons.log" 2>&1
say "$(slurmctld -V), one node"
sinfo --format='%N %T %c cpus %m MB %G'

say "the batch: each job asks for one core and one of the two GPUs; $victim will be killed once it has saved something"
rm -rf "$root/logs/checkpoints/$profile/$victim"
figures --set-threads notebook=1 --set-resources notebook:gpu=1 --slurm-init-seconds-before-status-checks 5 \
    --slurm-status-command squeue > "$work/batch.log" 2>&1 &
batch=$!
started=("$batch" "${started[@]}")
until_true saved
killed="$(job)"
scontrol show job -d "$killed" | grep -E 'JobId|JobState|TimeLimit|TRES=|GRES=|Comment'
say "scancel --signal=KILL --full $killed, while its checkpoints are:"
scancel --signal=KILL --full "$killed"
ls "$root/logs/checkpoints/$profile/$victim"
wait $batch && code=0 || code=$?

say "what overparam figures said (exit code $code)"
cat "$work/batch.log"
say "what SLURM says"
squeue --states=all --sort=i --Format='JobID:6,State:11,TimeUsed:7,NumCPUs:6,MinMemory:12,tres-per-job:14,Comment:70'
grep "JobId=$killed " "$work/completed"

say "$victim once more, here and undisturbed: are its numbers those of the job that was killed and resumed?"
numbers() { sed -n '/^ "checks"/,/^ "seeds"/p' "$1/figures/$profile/$victim/result.json"; }
mkdir -p "$work/undisturbed"
OVERPARAM_FIGURES="$work/undisturbed/figures" "$root/.venv/bin/python" -m overparam.run.cli run "$victim" --profile $profile \
    --threads 1 --json
cmp <(numbers "$work") <(numbers "$work/undisturbed")
echo "$(numbers "$work" | grep -c '"value"') numbers, equal to the bit"

say "the batch once more"
figures
[ $code = 0 ]
stop
trap - EXIT
rm -rf "$work"
