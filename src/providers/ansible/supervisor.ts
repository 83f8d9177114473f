/**
 * Runs a command for as long as lines come in at its standard input, and ends with its exit code. A process that was killed sends no more, and
 * neither does one that stands still: then everything that the command has started is killed, since another server may go on with the run.
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
"$@" </dev/null 2>&4 3<&- 4>&- &
command=$!
(
  while read -r -t "$patience" _ <&3; do :; done
  end_tree "$command"
  rm -rf -- "$directory"
) &
watch=$!
exec 3<&-
wait "$command"
code=$?
kill -KILL "$watch" 2>/dev/null
rm -rf -- "$directory"
exit "$code"
`;
