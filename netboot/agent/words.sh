# What the boot script said, in words of the kernel's command line: `millwright.server=http://10.0.0.1:8080`.

CMDLINE_FILE=${CMDLINE_FILE:-/proc/cmdline}
# For what is kept while it runs: memory.
WORK=${WORK:-/tmp}

# word NAME: its value, or nothing.
word() {
  set -f
  for each in $(cat "$CMDLINE_FILE"); do
    case "$each" in
      "millwright.$1="*)
        printf '%s' "${each#millwright."$1"=}"
        break
        ;;
    esac
  done
  set +f
}

say() { echo "millwright: $*"; }

SERVER=$(word server)
MAC=$(word mac)
TOKEN=$(word token)
# Seconds for people to read what went wrong, before the machine boots again.
PAUSE=$(word pause)
PAUSE=${PAUSE:-10}
