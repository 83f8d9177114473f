import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { Machine } from "../devices/machine.ts";
import { createSeededValues } from "../seeded-values.ts";
import { createSimulatedClock } from "../simulated-clock.ts";
import { buildSite } from "../site.ts";
import { firmwareMemory } from "../testing/firmware-memory.ts";
import { runScript } from "./interpreter.ts";
import { inputOf } from "./shell-session.ts";

/** A machine that is up, and what running a script on it says. */
function shellOnTheBench() {
  const seeded = createSeededValues(1);
  const site = buildSite({ racks: [{ shelves: 0, machines: 1 }] }, seeded);
  const [spec] = site.machines;
  if (spec === undefined) throw new Error("the site has no machine");
  const clock = createSimulatedClock({ realAt: Date.now(), simulatedAt: Date.now(), speed: 100_000 });
  const machine = new Machine(spec, {
    clock,
    seeded,
    load: () => undefined,
    save: () => {},
    isFaultPresent: () => false,
    firmware: firmwareMemory(),
    images: site.images,
    pxeImage: site.pxe.image,
    installFails: () => false,
    hangsInPost: () => false,
    hasBootServer: () => false,
  });
  const surroundings = {
    clock,
    judgeJoin: () => ({ refused: "no cluster" }),
    joinFails: () => false,
    reaches: () => true,
    cluster: () => undefined,
  };
  return {
    machine,
    async run(script: string, options: { env?: Record<string, string>; stdin?: string; signal?: AbortSignal } = {}) {
      let [stdout, stderr] = ["", ""];
      const io = {
        stdin: inputOf(options.stdin ?? ""),
        out: (text: string) => {
          stdout += text;
        },
        error: (text: string) => {
          stderr += text;
        },
      };
      const signal = options.signal ?? new AbortController().signal;
      const session = { machine, user: "root", surroundings, signal };
      return { code: await runScript(script, session, { io, env: options.env ?? {} }), stdout, stderr };
    },
  };
}

const { run, machine } = shellOnTheBench();

describe("scripts", () => {
  test.each([
    ["echo a b   c", "a b c\n"],
    ["echo 'a   $b' \"c  $X\" d\\ e", "a   $b c  x y d e\n"],
    ["echo $X | cat", "x y\n"],
    ['for i in $X z; do echo "<$i>"; done', "<x>\n<y>\n<z>\n"],
    [`A=1; B=$A$A; echo \${B} \${NONE:-none} \${#}`, "11 none 0\n"],
    [`echo \${NONE:-$(echo from a command)} \${NONE:-$X}`, "from a command x y\n"],
    ["true && echo yes || echo no; false && echo yes || echo no", "yes\nno\n"],
    ["! false && echo negated", "negated\n"],
    ["echo $(echo $(echo deep))", "deep\n"],
    ["if false; then echo 1; elif [ 2 -gt 1 ]; then echo 2; else echo 3; fi", "2\n"],
    ["echo one > /tmp/f; echo two >> /tmp/f; cat /tmp/f; rm /tmp/f; test -e /tmp/f || echo gone", "one\ntwo\ngone\n"],
    ["cat > /etc/x <<EOF\nname=$X\nEOF\ngrep -q ^name= /etc/x && cat /etc/x", "name=x y\n"],
    ["cat <<'EOF'\n$X\nEOF\n", "$X\n"],
    ["printf '%s-%s\\n' a b c d", "a-b\nc-d\n"],
    ["# a comment\necho a # another\n", "a\n"],
    ["sudo -n env A=5 sh -c 'echo $A $1' name arg", "5 arg\n"],
    ["nothing 2>/dev/null; echo $?", "127\n"],
    ["echo lost 1>&2 2>/dev/null; echo kept", "kept\n"],
    ["n=4; n=$((n * (3 - 1) % 5 + 10 / 3)); echo $n $(($n < 7)) $((-n + none))", "6 1 -6\n"],
    ["echo abcdef > /tmp/t; tail -c +4 /tmp/t; tail -c 3 /tmp/t; printf '1\\n2\\n3' | tail -n 2", "def\nef\n2\n3"],
    ["printf 'a:1\\nb\\n\\nc:3\\n' | grep -v b | cut -d : -f 1", "a\n\nc\n"],
    ["mkdir /tmp/d; echo 1 > /tmp/d/a; [ -d /tmp/d ] && rm -rf /tmp/d; [ -e /tmp/d ] || echo gone", "gone\n"],
    ["command -v kubeadm; command -v nothing || echo none", "/usr/bin/kubeadm\nnone\n"],
    ["(sleep 1; echo late > /tmp/bg) & [ -e /tmp/bg ] || echo early; wait; cat /tmp/bg", "early\nlate\n"],
    ["sleep 1000h & kill -0 $! && kill $! && wait; kill -0 $! 2>/dev/null || echo ended", "ended\n"],
    ["false; A=$?; echo $A $?; B=$(exit 4); echo $?", "1 0\n4\n"],
    [
      "mkdir /tmp/m && echo 1 > /tmp/m/a; mkdir /tmp/m 2>/dev/null || echo taken; mkdir -p /tmp/m && rm -r /tmp/m",
      "taken\n",
    ],
    [
      "echo 1 > /tmp/m1; echo 2 > /tmp/m2; mv -f /tmp/m1 /tmp/m2; cat /tmp/m2; [ -e /tmp/m1 ] || echo gone",
      "1\ngone\n",
    ],
    ["echo x=y > /tmp/g1; echo z > /tmp/g2; grep -ls x= /tmp/g[0-9]* | tr -dc '0-9\\n'; echo /none/*", "1\n/none/*\n"],
    [
      "MARK=here; sleep 1000h & kill -s TERM -- $(grep -ls MARK=here /proc/[0-9]*/environ | tr -dc '0-9\\n') && wait; echo ended",
      "ended\n",
    ],
    ["until [ -f /tmp/flag ]; do sleep 5; touch=1; echo x > /tmp/flag; done; echo done", "done\n"],
  ])("%s", async (script, expected) => {
    expect(await run(script, { env: { X: "x y" } })).toMatchObject({ code: 0, stdout: expected });
  });

  test.each([
    ["set -e; false; echo never", 1],
    ["set -eu\nif false; then :; fi\nfalse || true\n! true\nexit 9", 9],
    ["set -e; false && true; A=1; B=$(true); exit 5", 5],
    ["set -e; A=$(false); exit 5", 1],
    ["exit 300", 44],
    ["A=1; (A=2; exit 3); [ $? -eq 3 ] && exit $A", 1],
    [`: \${TOKEN:?must be set}`, 2],
    ["echo 'unterminated", 2],
    ["if true; then echo", 2],
    ["constructor", 127],
    ["$constructor", 0],
  ])("%j ends with code %d", async (script, code) => {
    expect((await run(script)).code).toBe(code);
  });

  test("an endless loop ends, and lets others have their turn meanwhile", async () => {
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);
    expect((await run("while true; do :; done")).code).toBe(1);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(0);
  });

  test("a wait ends with the connection", async () => {
    const gone = new AbortController();
    const waiting = run("sleep 10000h", { signal: gone.signal });
    gone.abort(new Error("gone"));
    await expect(waiting).rejects.toThrow("gone");
  });

  describe("in the background", () => {
    const waiting =
      "setsid nohup sh -c 'echo $$ > /tmp/pid; sleep 1; echo still here; sleep 1000h' > /tmp/out 2>&1 < /dev/null &";

    test("outlive the connection, write as they go, and are found by their environment", async () => {
      const gone = new AbortController();
      await run(`MARK=m1\n${waiting}`, { signal: gone.signal });
      gone.abort(new Error("gone"));
      await vi.waitFor(async () => expect((await run("cat /tmp/out")).stdout).toBe("still here\n"), { timeout: 9_000 });
      expect((await run('grep -q MARK=m1 "/proc/$(cat /tmp/pid)/environ" && echo found')).stdout).toBe("found\n");
    });

    test("end with the boot that they were started under", async () => {
      const other = shellOnTheBench();
      await other.run(waiting);
      await vi.waitFor(async () => expect((await other.run("cat /tmp/pid")).code).toBe(0), { timeout: 9_000 });
      const before = other.machine.upBootId;
      other.machine.reset("ForceRestart", { is: "honest" });
      await vi.waitFor(() => expect([undefined, before]).not.toContain(other.machine.upBootId), { timeout: 9_000 });
      expect((await other.run('[ -e "/proc/$(cat /tmp/pid)/environ" ] || echo ended')).stdout).toBe("ended\n");
    });
  });

  test("no script brings it down", async () => {
    const piece = fc.constantFrom(
      ...`echo|a|$X|$(|)|'|"|;|&&|||\n|>|<<EOF|EOF|if|then|fi|do|done|{|}|!|\\|/f|\${X:-|}|cat|#`.split("|"),
      "|",
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 15 }), async (pieces) => {
        const { code } = await run(pieces.join(" "));
        expect(code).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 300 },
    );
    expect(machine.upBootId).toBeDefined();
  });
});
