import type { Connection, ServerChannel } from "ssh2";
import ssh2 from "ssh2";
import { afterEach, describe, expect, test, vi } from "vitest";
import { aCall } from "../../capabilities/conformance/device-bench.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";
import { type Duration, milliseconds, seconds } from "../../kernel/time/duration.ts";
import { createSshProvider, type SshProvider, type SshProviderOptions } from "./ssh-provider.ts";

const ended: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ended.splice(0).reverse()) end();
});

interface Host {
  readonly target: SshTarget;
  /** What it shows, as in known_hosts. */
  readonly hostKey: string;
  /** Connections that were made to it. */
  connections: number;
  /** Whom it lets in; waited for. */
  letsIn: () => Promise<boolean>;
  /** What it does once it is to run a command. */
  onExec: (begin: () => ServerChannel) => void;
}

/** Of two hundred keys that ssh2 makes, it cannot read one itself. */
function aKeyPair() {
  for (;;) {
    const pair = ssh2.utils.generateKeyPairSync("ed25519");
    if (!(ssh2.utils.parseKey(pair.private) instanceof Error)) return pair;
  }
}

/** An SSH server in this very process, which runs no commands and forwards to nowhere. */
async function aHost(): Promise<Host> {
  const { private: ownKey, public: hostKey } = aKeyPair();
  const { private: privateKey } = aKeyPair();
  const open = new Set<Connection>();
  const host = {
    connections: 0,
    letsIn: async () => true,
    onExec: (begin: () => ServerChannel) => {
      const channel = begin();
      channel.on("end", () => {
        channel.exit(0);
        channel.end();
      });
      channel.resume();
    },
  };
  const server = new ssh2.Server({ hostKeys: [ownKey] }, (client) => {
    host.connections += 1;
    open.add(client);
    client.on("error", () => undefined);
    client.on("close", () => open.delete(client));
    client.on("authentication", (context) => {
      if (context.method !== "publickey") return context.reject(["publickey"]);
      if (context.signature === undefined) return context.accept();
      void host.letsIn().then((isLetIn) => (isLetIn ? context.accept() : context.reject()));
    });
    client.on("session", (accept) => {
      accept().on("exec", (begin) => host.onExec(begin));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ended.push(() => {
    for (const client of open) client.end();
    server.close();
  });
  const { port } = server.address() as { port: number };
  const target = {
    address: "127.0.0.1",
    port,
    username: "root",
    credentials: { privateKey },
    hostKey: null,
    jumpHosts: [],
  };
  return Object.assign(host, { target, hostKey });
}

/** As long as a test may take: on a computer that stalls, a host that refuses would else be one that is silent. */
const PATIENT = seconds(60);

function aProvider(options: SshProviderOptions = {}): SshProvider {
  const provider = createSshProvider({ connectTimeout: PATIENT, startTimeout: PATIENT, ...options });
  ended.push(() => provider.close());
  return provider;
}

const TRUE = { script: "true\n", env: {}, timeout: PATIENT };
const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error as Error,
  );

describe("those who come to a host at the same time", () => {
  test("sign in once", async () => {
    const host = await aHost();
    const { exec } = aProvider().can;
    const exits = await Promise.all(Array.from({ length: 12 }, () => exec.run(host.target, TRUE, aCall())));
    expect(exits.map(({ code }) => code)).toEqual(Array(12).fill(0));
    expect(host.connections).toBe(1);
  });

  test("are refused by one sign-in, and whoever comes then tries again", async () => {
    const host = await aHost();
    const { exec } = aProvider().can;
    host.letsIn = async () => false;
    const failures = await Promise.all(
      Array.from({ length: 5 }, () => failureOf(exec.run(host.target, TRUE, aCall()))),
    );
    for (const failure of failures) expect(failure).toMatchObject({ family: "keeps_out" });
    expect(host.connections).toBe(1);
    host.letsIn = async () => true;
    expect(await exec.run(host.target, TRUE, aCall())).toMatchObject({ code: 0 });
  });

  test("do not depend on the one who signs in: it may be told to stop, and so may they", async () => {
    const host = await aHost();
    const { exec } = aProvider().can;
    const asked = Promise.withResolvers<void>();
    const hanging = Promise.withResolvers<boolean>();
    host.letsIn = () => {
      asked.resolve();
      return hanging.promise;
    };
    const [first, second] = [new AbortController(), new AbortController()];
    const run = (signal?: AbortSignal) => exec.run(host.target, TRUE, aCall(signal && { signal }));
    const begun = failureOf(run(first.signal));
    await asked.promise;
    const [waits, leaves] = [run(), failureOf(run(second.signal))];
    second.abort();
    expect((await leaves)?.message).toContain("was stopped");
    host.letsIn = async () => true;
    first.abort();
    expect((await begun)?.message).toContain("was stopped");
    expect(await waits).toMatchObject({ code: 0 });
    expect(host.connections).toBe(2);
  });

  test("try themselves where the one who signs in had less time than a host may take", async () => {
    const host = await aHost();
    const { exec } = aProvider().can;
    const gaveUp = Promise.withResolvers<boolean>();
    host.letsIn = () => gaveUp.promise;
    const begun = failureOf(exec.run(host.target, TRUE, aCall({ lease: milliseconds(500) })));
    const waits = exec.run(host.target, TRUE, aCall());
    expect(await begun).toMatchObject({ family: "silent" });
    gaveUp.resolve(true);
    expect(await waits).toMatchObject({ code: 0 });
    expect(host.connections).toBe(2);
  });

  test("take the word of one who had all the time that a host may take", async () => {
    const host = await aHost();
    const { exec } = aProvider({ connectTimeout: milliseconds(500) }).can;
    host.letsIn = () => new Promise(() => undefined);
    const failures = await Promise.all(
      Array.from({ length: 3 }, () => failureOf(exec.run(host.target, TRUE, aCall()))),
    );
    for (const failure of failures) expect(failure).toMatchObject({ family: "silent" });
    expect(host.connections).toBe(1);
  });

  test("wait for as long as the one who signs in may take over all the hosts on the way", async () => {
    const [jump, host] = [await aHost(), await aHost()];
    const { exec } = aProvider({ connectTimeout: seconds(7) }).can;
    const asked = Promise.withResolvers<void>();
    jump.letsIn = () => {
      asked.resolve();
      return new Promise(() => undefined);
    };
    const { address, port, username } = jump.target;
    const target = { ...host.target, jumpHosts: [{ address, port, username, hostKey: jump.hostKey }] };
    const stop = new AbortController();
    const begun = failureOf(exec.run(target, TRUE, aCall(stop)));
    await asked.promise;
    const mayTouchDevice = vi.fn((wanted: Duration) => wanted);
    const waits = failureOf(exec.run(target, TRUE, { ...aCall(stop), mayTouchDevice }));
    stop.abort();
    await Promise.all([begun, waits]);
    expect(mayTouchDevice.mock.calls).toEqual([[3 * seconds(7)]]); // signing in at both, and forwarding from one to the other
  });

  test("are each told their own remedy where one wants the host itself, and the other what is behind it", async () => {
    const [host, other] = [await aHost(), await aHost()];
    const { exec } = aProvider().can;
    const { address, port, username, credentials } = host.target;
    const pinned = { address, port, username, hostKey: other.hostKey };
    const behind = { ...other.target, credentials, jumpHosts: [pinned] };
    const [way, machine] = await Promise.all([
      failureOf(exec.readHostKey(behind, aCall())),
      failureOf(exec.run({ ...pinned, credentials, jumpHosts: [] }, TRUE, aCall())),
    ]);
    expect(way?.message).toMatch(/^jump host SSH .* of this jump host/);
    expect(machine?.message).toMatch(/^SSH .*--ssh-host-key/);
  });
});

test("a command that ends as soon as it begins has ended, and was not cut off", async () => {
  const host = await aHost();
  host.onExec = (begin) => {
    const channel = begin();
    channel.write("This account is currently not available.\n");
    channel.exit(1);
    channel.end();
  };
  const exit = await aProvider().can.exec.run(host.target, TRUE, aCall());
  expect(exit).toMatchObject({ code: 1, output: "This account is currently not available.\n" });
});

describe("a command that is begun after nobody waits for it any more", () => {
  test("is ended at once: a host runs only so many over one connection", async () => {
    const host = await aHost();
    const { exec } = aProvider({ startTimeout: milliseconds(50) }).can;
    const held = Promise.withResolvers<() => ServerChannel>();
    host.onExec = (begin) => held.resolve(begin);
    await expect(exec.run(host.target, TRUE, aCall())).rejects.toMatchObject({ family: "silent" });
    const channel = (await held.promise)();
    const onClose = vi.fn();
    channel.on("close", onClose);
    channel.resume();
    await vi.waitFor(() => expect(onClose).toHaveBeenCalled(), { timeout: 5_000 });
  });

  test("also where it may not be given its script any more", async () => {
    const host = await aHost();
    const { exec } = aProvider().can;
    const begun = Promise.withResolvers<ServerChannel>();
    let isOurs = true;
    host.onExec = (begin) => {
      isOurs = false;
      begun.resolve(begin());
    };
    const mayTouchDevice = <T>(wanted: T): T => {
      if (isOurs) return wanted;
      throw new Error("the lease is over");
    };
    await expect(exec.run(host.target, TRUE, { ...aCall(), mayTouchDevice })).rejects.toThrow("the lease is over");
    const channel = await begun.promise;
    const onClose = vi.fn();
    channel.on("close", onClose);
    channel.resume();
    await vi.waitFor(() => expect(onClose).toHaveBeenCalled(), { timeout: 5_000 });
  });
});
