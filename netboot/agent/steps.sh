# Carries out the steps of a workflow: each for at most its timeout, again as often as it says, and then what it says on failure.
# The server sends them as lines; each step becomes a folder of small files below $WORK/steps.

STEP_DELAY=${STEP_DELAY:-}

# fetch_steps: needs the token of this boot. On failure `why` says what went wrong.
fetch_steps() {
  tries=0
  until timeout 30 wget -q -O "$WORK/lines" --header 'Content-Type: application/json' \
    --post-data "{\"mac_address\":\"$MAC\",\"report_token\":\"$TOKEN\"}" "$SERVER/api/v1/boot/steps"; do
    tries=$((tries + 1))
    if [ "$tries" -ge "$REPORT_TRIES" ]; then
      why="the steps could not be had: is the workflow another one since this boot?"
      return 1
    fi
    sleep 2
  done
  read_steps
}

# The last line tells that nothing was cut off.
read_steps() {
  rm -rf "$WORK/steps"
  mkdir "$WORK/steps"
  resumes=false step_count=0 complete_lines=false
  if [ "$(head -n 1 "$WORK/lines")" != "millwright-steps 1" ]; then
    why="the steps are in a form that this environment does not know: build it again with the server's version"
    return 1
  fi
  while read -r first second rest; do
    case "$first" in
      step)
        step_count=$((step_count + 1))
        folder=$WORK/steps/$step_count
        mkdir "$folder"
        echo "$second $rest" >"$folder/words"
        ;;
      name) echo "$second" | base64 -d >"$folder/name" ;;
      set) echo "$rest" | base64 -d >"$folder/config.$second" ;;
      state) step_state=$second ;;
      resumes) resumes=true ;;
      end) complete_lines=true ;;
    esac
  done <"$WORK/lines"
  [ "$complete_lines" = true ] && return 0
  why="the steps were cut off on their way"
  return 1
}

# config NAME [DEFAULT]: of the step that is under way.
config() { if [ -s "$folder/config.$1" ]; then cat "$folder/config.$1"; else printf '%s' "${2:-}"; fi; }

# Reads the words of step $1 into variables.
load_step() {
  folder=$WORK/steps/$1
  read -r sequence type limit on_failure retries delay next_state place <"$folder/words"
  step_name=$(cat "$folder/name")
}

# tell_step STATE ATTEMPT [MESSAGE]: until it was taken, since the server counts on each.
tell_step() {
  report "step-$sequence-$1-$2" "\"installation_status\":\"progress\",\"installation_progress\":$(share_of "${4:-0}"),\"step\":{\"sequence\":$sequence,\"state\":\"$1\",\"attempt\":$2,\"message\":\"$(json_text "${3:-}" 255)\"}"
}

# share_of PERCENT: of the whole installation, when the present step has come so far.
share_of() { echo $((((step_number - 1) * 100 + $1) / (step_count > 0 ? step_count : 1))); }

# run_steps: all that are left. 0: the installation is complete, and was reported so. 1: it failed; `why` says why.
run_steps() {
  step_number=1 is_complete=false reboots=false why="the server took no report"
  grep -q '^[0-9]* boot ' "$WORK"/steps/*/words || has_image_first=true
  if [ "${has_image_first:-false}" = true ] && [ "$resumes" = false ] && [ -n "$(word image)" ]; then
    install_image "$(word image)" "$(word digest)" "$(word target)" || return 1
  fi
  [ "$resumes" = false ] || note_written
  while [ "$step_number" -le "$step_count" ]; do
    load_step "$step_number"
    if [ "$place" = todo ]; then
      finish_step || {
        [ "$is_complete" = true ] && return 0
        return 1
      }
      [ "$reboots" = true ] && return 0
    fi
    step_number=$((step_number + 1))
  done
  [ "$is_complete" = true ] || report_complete
}

# What the steps before this boot wrote. One that may be skipped may have written nothing.
note_written() {
  [ "${has_image_first:-false}" = false ] || [ -z "$(word image)" ] || writes_to "$(own_disk)"
  for each in "$WORK"/steps/*; do
    load_step "${each##*/}"
    case "$place $on_failure $type" in
      "done skip "*) ;;
      done*partition) writes_to "$(target_disk)" ;;
      done*" boot") [ -z "$(word image)" ] || writes_to "$(own_disk)" ;;
    esac
  done
}

report_complete() {
  report complete '"installation_status":"complete","installation_progress":100'
  is_complete=true
}

# finish_step: tries it as often as it may be tried. 1: it failed for good.
finish_step() {
  attempt=1
  say "step $sequence, $step_name ($type)"
  while :; do
    tell_step running "$attempt" || return 1
    if [ "$type" = reboot ] && [ "$step_number" -lt "$step_count" ]; then
      tell_step rebooting "$attempt" || return 1
      reboots=true
      return 0
    fi
    if try_step; then
      tell_step completed "$attempt" "$(cat "$WORK/step-told" 2>/dev/null)" 100 || return 1
      [ "$next_state" = - ] || report_complete
      return 0
    fi
    say "step $sequence failed: $why"
    [ "$attempt" -le "$retries" ] || break
    tell_step retrying "$attempt" "$why" || return 1
    sleep "${STEP_DELAY:-$delay}"
    attempt=$((attempt + 1))
  done
  if [ "$on_failure" = skip ]; then
    tell_step skipped "$attempt" "$why" || return 1
    [ "$next_state" = - ] || report_complete
    return 0
  fi
  tell_step failed "$attempt" "$why"
  why="step $sequence ($step_name): $why"
  [ "$on_failure" != rollback ] || roll_back
  return 1
}

# end_session PID: kills the leader of a session with all that it started. One that has not begun its session yet has started
# nothing; should it begin it in between, it is ended by the last of the three.
end_session() {
  kill -9 "-$1" 2>/dev/null && return
  kill -9 "$1" 2>/dev/null
  kill -9 "-$1" 2>/dev/null
}

# try_step: once, in a session of its own, so that what runs for too long ends with all that it started.
try_step() {
  rm -f "$WORK/step-told" "$WORK/step-why" "$WORK/step-late"
  setsid sh "$HERE/one-step.sh" "$step_number" </dev/null &
  child=$!
  setsid sh -c '. "$4"; sleep "$1"; : >"$2"; end_session "$3"' timer "$limit" "$WORK/step-late" "$child" "$HERE/steps.sh" </dev/null 2>/dev/null &
  timer=$!
  wait "$child"
  ended=$?
  end_session "$timer"
  wait "$timer" 2>/dev/null
  [ "$ended" -ne 0 ] || return 0
  why=$(cat "$WORK/step-why" 2>/dev/null)
  [ ! -e "$WORK/step-late" ] || why="not done within $limit s"
  why=${why:-it ended with $ended}
  return 1
}

# roll_back: undoes the scripts that were carried out, the last one first. What was begun never boots; no other disk is touched.
roll_back() {
  failed_why=$why failed_disk=$(target_disk)
  while [ "$step_number" -gt 1 ]; do
    step_number=$((step_number - 1))
    load_step "$step_number"
    [ -s "$folder/config.rollback" ] || continue
    if MILLWRIGHT_TARGET=$(target_disk) timeout "$limit" sh "$folder/config.rollback" >"$WORK/script-output" 2>&1; then
      tell_step rolled_back 1
    else
      tell_step failed 1 "its rollback failed: $(tail -n 1 "$WORK/script-output")"
    fi
  done
  for disk in "$failed_disk" "$(own_disk)"; do
    [ -w "$disk" ] && is_begun "$disk" && dd if=/dev/zero of="$disk" bs="$MIB" count=1 conv=notrunc 2>/dev/null
  done
  why=$failed_why
}

# is_begun DISK: this installation wrote an image or a table to it, or a script changed its beginning.
is_begun() {
  real=$(readlink -f "$1")
  if [ -e "$WORK/written" ] && grep -qxF "$real" "$WORK/written"; then return 0; fi
  [ -e "$WORK/first-mib" ] && [ "$real" = "$(readlink -f "$(own_disk)")" ] &&
    [ "$(first_mib_of "$1")" != "$(cat "$WORK/first-mib")" ]
}

# The disk that the step under way is about.
target_disk() {
  disk=$(config device)
  [ -n "$disk" ] || disk=$(own_disk)
  printf '%s' "$disk"
}

# The disk that this installation is about.
own_disk() {
  disk=$(word target)
  [ -n "$disk" ] || disk=$(first_disk)
  printf '%s' "$disk"
}
