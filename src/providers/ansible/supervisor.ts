/**
 * Runs a command for as long as lines come in at its standard input, and ends with its exit code. A process that was killed sends no more, and
 * neither does one that stands still: then everything that the command has started is killed, since another server may go on with the run.
 * What the command leaves behind when it ends by itself is killed as well: it would keep the output open, and has no files any more.
 *
 * A process whose parent has ended is nobody's child here. The mark in its environment tells that it is of this play.
 * Takes the directory to remove in the end, how many seconds it waits for a line, and the command.
 */
export const SUPERVISOR = `
set -u
directory=$1 patience=$2; shift 2
# What this shell itself says, such as "Killed", is nobody's output.
exec 3<&0 4>&2 2>/dev/null
end_tree() {
  kill -STOP "$1" 2>/dev/null
  local child
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do end_tree "$child"; done
  kill -KILL "$1" 2>/dev/null
}
# Again until there is none: a process may fork while the others are read. One that cannot be killed is not waited for.
end_marked() {
  local pass pids
  for pass in {1..100}; do
    pids=$(grep -slzxF "MILLWRIGHT_PLAY=$directory" /proc/[0-9]*/environ | grep -o '[0-9]*') || return
    kill -STOP $pids
    kill -KILL $pids
  done
}
MILLWRIGHT_PLAY=$directory "$@" </dev/null 2>&4 3<&- 4>&- &
command=$!
(
  while read -r -t "$patience" _ <&3; do :; done
  end_tree "$command"
  end_marked
  rm -rf -- "$directory"
) &
watch=$!
exec 3<&-
wait "$command"
code=$?
kill -KILL "$watch" 2>/dev/null
end_marked
rm -rf -- "$directory"
exit "$code"
`;
