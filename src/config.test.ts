import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { warnOfStricterDefaults } from "./config/stricter-defaults.ts";
import { describeConfig, type LoadOptions, loadConfig, printConfig } from "./config.ts";
import { AppError } from "./kernel/errors.ts";
import { seconds } from "./kernel/time/duration.ts";

const host = { uid: 1000, homedir: "/home/pat", cwd: "/work" };

function load(options: Partial<LoadOptions> & { file?: string } = {}) {
  const { file, env = {}, argv = [], ...rest } = options;
  return loadConfig({
    env: file === undefined ? env : { ...env, MILLWRIGHT_CONFIG: "/etc/millwright/config.yaml" },
    argv,
    host,
    readFile: () => file ?? "",
    ...rest,
  });
}

function refusalOf(options: Parameters<typeof load>[0]): string {
  try {
    load(options);
  } catch (error) {
    expect(error).toBeInstanceOf(AppError);
    return (error as AppError).message;
  }
  throw new Error("the configuration was accepted");
}

describe("precedence", () => {
  test("a flag beats the environment, which beats the file, which beats the default", () => {
    const file = "http:\n  listen: 127.0.0.1:1\n";
    const env = { MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:2" };
    const argv = ["--http-listen", "127.0.0.1:3"];
    expect(load().config.http.listen.port).toBe(8080);
    expect(load({ file }).config.http.listen.port).toBe(1);
    expect(load({ file, env }).config.http.listen.port).toBe(2);
    expect(load({ file, env, argv }).config.http.listen.port).toBe(3);
  });

  test("a call may list 100 ids by default", () => {
    expect(load().config.maxFindByIds).toBe(100);
  });

  test("an empty variable counts as unset", () => {
    expect(load({ env: { MILLWRIGHT_LOG_LEVEL: "" } }).config.log.level).toBe("info");
  });

  test("dev has defaults of its own, which any source beats", () => {
    expect(load({ profile: "dev" }).config.sim.speed).toBe(20);
    expect(load().config.sim.speed).toBe(1);
    expect(load({ profile: "dev", env: { MILLWRIGHT_SIM_SPEED: "3" } }).config.sim.speed).toBe(3);
    expect(load({ profile: "dev" }).config.bmc.allowedNetworks).toEqual([
      { address: "127.0.0.0", prefix: 8, family: "ipv4" },
    ]);
    expect(load().config.bmc.allowedNetworks).toEqual([]);
  });
});

describe("sources", () => {
  test("a file may be YAML or JSON, nested or dotted", () => {
    expect(load({ file: "engine: { stop_grace: 20s }" }).config.engine.stopGrace).toBe(seconds(20));
    expect(load({ file: '{"engine.stop_grace": "20s"}' }).config.engine.stopGrace).toBe(seconds(20));
    expect(load({ file: "" }).config.engine.stopGrace).toBe(seconds(5));
  });

  test("--config names the file and beats the variable", () => {
    const asked: string[] = [];
    const readFile = (path: string) => {
      asked.push(path);
      return "";
    };
    load({ env: { MILLWRIGHT_CONFIG: "/a" }, argv: ["--config=b.yaml"], readFile });
    expect(asked).toEqual(["/work/b.yaml"]);
  });

  test("fake machines are there only where somebody asks for them, and fail only at what is named", () => {
    for (const { config } of [load(), load({ profile: "dev" })])
      expect(config.fake).toEqual({ provider: "off", fail: [] });
    const env = { MILLWRIGHT_FAKE_PROVIDER: "slow", MILLWRIGHT_FAKE_FAIL: "netboot, join" };
    expect(load({ env }).config.fake).toEqual({ provider: "slow", fail: ["netboot", "join"] });
    expect(load({ file: "fake: { fail: [rma] }" }).config.fake.fail).toEqual(["rma"]);
    expect(refusalOf({ env: { MILLWRIGHT_FAKE_FAIL: "everything" } })).toContain("MILLWRIGHT_FAKE_FAIL");
  });

  test("a relative path is relative to the file that says it, else to the working directory", () => {
    expect(load({ file: "secret_key_file: keys/main" }).config.secretKeyFile).toBe("/etc/millwright/keys/main");
    expect(load({ argv: ["--secret-key-file", "keys/main"] }).config.secretKeyFile).toBe("/work/keys/main");
  });

  test("flags take their value after a space or an equals sign, lists add up, switches need none", () => {
    const { config } = load({
      argv: [
        "--bmc-allowed-networks=10.0.0.0/8",
        "--bmc-allowed-networks",
        "fd00::/8",
        "--otel-accept-traceparent",
        "--log-level",
        "warn",
      ],
    });
    expect(config.bmc.allowedNetworks.map(({ address }) => address)).toEqual(["10.0.0.0", "fd00::"]);
    expect(config.otel.acceptTraceparent).toBe(true);
    expect(config.log.level).toBe("warn");
    expect(load({ argv: ["--otel-accept-traceparent", "false"] }).config.otel.acceptTraceparent).toBe(false);
  });

  test.each([
    [["--log-level"], "flag --log-level needs a value"],
    [["--log-level", "info", "--log-level", "warn"], "flag --log-level is given twice"],
    [["serve"], 'unexpected argument "serve"'],
  ])("%j is refused", (argv, message) => {
    expect(refusalOf({ argv })).toContain(message);
  });

  test("an unreadable file is named", () => {
    const readFile = () => {
      throw new Error("ENOENT");
    };
    expect(refusalOf({ env: { MILLWRIGHT_CONFIG: "/no/such" }, readFile })).toContain(
      "file /no/such: cannot be read: ENOENT",
    );
  });

  test("broken YAML and repeated keys are refused with their line", () => {
    expect(refusalOf({ file: "log:\n  level: [" })).toMatch(/file \/etc\/millwright\/config\.yaml:\d/);
    expect(refusalOf({ file: "log:\n  level: info\n  level: warn\n" })).toContain("config.yaml:3");
    expect(refusalOf({ file: "log: {level: info}\nlog.level: warn\n" })).toContain(
      'config.yaml:2: "log.level" is given twice',
    );
    expect(refusalOf({ file: "- a" })).toContain("must be an object of settings");
    expect(refusalOf({ file: "log: info" })).toContain('"log" must be an object of settings');
  });
});

describe("mistakes", () => {
  test("a mistyped key is refused with its place and what was meant", () => {
    expect(refusalOf({ file: "log:\n  levle: info\n" })).toBe(
      'file /etc/millwright/config.yaml:2: unknown key "log.levle"; did you mean "log.level"?',
    );
    expect(refusalOf({ file: "htpp:\n  listen: x\n" })).toBe(
      'file /etc/millwright/config.yaml:1: unknown key "htpp"; did you mean "http"?',
    );
    expect(refusalOf({ env: { MILLWRIGHT_DATABSE_URL: "x" } })).toBe(
      'environment: unknown variable "MILLWRIGHT_DATABSE_URL"; did you mean "MILLWRIGHT_DATABASE_URL"?',
    );
    expect(refusalOf({ argv: ["--grcp-listen", "x"] })).toBe(
      'unknown flag "--grcp-listen"; did you mean "--grpc-listen"?',
    );
  });

  const rows = describeConfig();
  const groups = new Set(
    rows.flatMap(({ key }) => key.split(".").map((_, index, parts) => parts.slice(0, index + 1).join("."))),
  );
  const typo = fc
    .record({
      row: fc.constantFrom(...rows),
      at: fc.nat(60),
      letter: fc.constantFrom(..."abcxyz"),
      how: fc.constantFrom("drop", "add", "replace"),
    })
    .map(({ row, at, letter, how }) => {
      const index = at % row.key.length;
      return `${row.key.slice(0, index)}${how === "drop" ? "" : letter}${row.key.slice(how === "add" ? index : index + 1)}`;
    })
    .filter((key) => !groups.has(key) && /^[a-z_.]+$/.test(key));

  test("any typo of any key is refused and named, in a file, a variable and a flag", () => {
    const knownNames = new Set(rows.flatMap(({ env, flag }) => [env, flag]));
    fc.assert(
      fc.property(typo, (key) => {
        expect(refusalOf({ file: `${JSON.stringify(key)}: 1` })).toContain(`unknown key "${key}"`);
        const env = `MILLWRIGHT_${key.replaceAll(".", "_").toUpperCase()}`;
        if (!knownNames.has(env)) expect(refusalOf({ env: { [env]: "1" } })).toContain(env);
        const flag = `--${key.replace(/[._]/g, "-")}`;
        if (!knownNames.has(flag)) expect(refusalOf({ argv: [flag, "1"] })).toContain(flag);
      }),
    );
  });

  test("the variables that Kubernetes adds for a Service named millwright are none of ours", () => {
    const env = {
      MILLWRIGHT_SERVICE_HOST: "10.0.0.1",
      MILLWRIGHT_SERVICE_PORT: "8080",
      MILLWRIGHT_SERVICE_PORT_GRPC: "50051",
      MILLWRIGHT_PORT: "tcp://10.0.0.1:8080",
      MILLWRIGHT_PORT_8080_TCP_ADDR: "10.0.0.1",
      MILLWRIGHT_GRPC_SERVICE_HOST: "10.0.0.2",
    };
    expect(load({ env }).config.grpc.listen.port).toBe(50051);
    expect(refusalOf({ env: { MILLWRIGHT_HTTP_PORT: "8080" } })).toContain("MILLWRIGHT_HTTP_PORT");
  });

  test.each([
    [
      "--max-find-by-ids",
      "0",
      'max_find_by_ids (flag --max-find-by-ids) is "0": must be a whole number from 1 to 1000',
    ],
    ["--max-find-by-ids", "1.5", "whole number"],
    ["--engine-stop-grace", "15", "duration with its unit"],
    ["--engine-stop-grace", "1h", "from 0s to 60s"],
    ["--grpc-listen", ":8080", "host:port"],
    ["--grpc-listen", "localhost:99999", "host:port"],
    ["--auth-mode", "on", "one of required, off"],
    ["--bmc-allowed-networks", "10.0.0.0/33", "list of networks"],
    ["--bmc-allowed-networks", "bmc.example", "list of networks"],
    ["--auth-mtls-roles", '{"CN=a":["root"]}', "list of roles"],
    ["--auth-mtls-roles", "CN=a", "list of roles"],
    ["--otel-accept-traceparent", "maybe", "unexpected argument"],
    ["--database-url", "mysql://db", "postgres://"],
  ])("%s %s is refused with the rule", (flag, value, message) => {
    expect(refusalOf({ argv: [flag, value] })).toContain(message);
  });

  test("all mistakes are reported at once", () => {
    const message = refusalOf({
      file: "nonsense: 1",
      env: { MILLWRIGHT_LOG_LEVEL: "loud" },
      argv: ["--sim-speed", "fast"],
    });
    expect(message).toContain("3 mistakes");
    expect(message).toContain('"nonsense"');
    expect(message).toContain("log.level (environment MILLWRIGHT_LOG_LEVEL)");
    expect(message).toContain("sim.speed (flag --sim-speed)");
  });
});

describe("rules over several settings", () => {
  test("authentication can be off on loopback alone", () => {
    expect(
      load({ argv: ["--auth-mode", "off", "--grpc-listen", "[::1]:0", "--http-listen", "localhost:0"] }).config.auth
        .mode,
    ).toBe("off");
    expect(refusalOf({ argv: ["--auth-mode", "off", "--http-listen", "0.0.0.0:8080"] })).toContain(
      'auth.mode is "off" while http.listen is on 0.0.0.0',
    );
    expect(refusalOf({ argv: ["--auth-mode", "off", "--grpc-listen", "127.example.org:1"] })).toContain(
      "grpc.listen is on 127.example.org",
    );
  });

  test.each([
    [["--tls-cert-file", "a"], "tls.key_file is missing"],
    [["--tls-client-ca-file", "a"], "tls.client_ca_file needs"],
    [["--auth-mtls-roles", '{"CN=a":["viewer"]}'], "auth.mtls.roles needs tls.client_ca_file"],
    [
      ["--auth-oidc-issuer", "https://id.example", "--auth-oidc-jwks-url", "https://id.example/keys"],
      "auth.oidc.audience is missing",
    ],
    [["--auth-oidc-issuer", "https://id.example", "--auth-oidc-audience", "m"], "exactly one of"],
    [["--auth-oidc-audience", "m"], "auth.oidc.issuer is missing"],
  ])("%j is refused", (argv, message) => {
    expect(refusalOf({ argv })).toContain(message);
  });

  test("an open listener without TLS is allowed with a warning", () => {
    expect(load().warnings).toEqual([]);
    expect(load({ argv: ["--http-listen", "0.0.0.0:8080"] }).warnings.join()).toContain(
      "http.listen is on 0.0.0.0 without TLS",
    );
  });

  test("one address that may take all places of a listener is warned of", () => {
    expect(load({ argv: ["--limits-connections", "2000"] }).warnings.join()).toContain(
      "limits.connections_per_address",
    );
    expect(load({ argv: ["--limits-connections", "2001"] }).warnings).toEqual([]);
  });

  test("a listener that callers may name is pointed at, where no name is allowed", () => {
    const open = ["--http-listen", "0.0.0.0:8080"];
    const warned = (...argv: string[]) =>
      load({ argv: [...open, ...argv] })
        .warnings.join()
        .includes("http.allowed_hosts");
    expect(warned()).toBe(true);
    expect(warned("--install-public-url", "http://10.0.0.1:8080")).toBe(true);
    expect(warned("--install-public-url", "http://boot.example:8080")).toBe(false);
    expect(warned("--http-allowed-hosts", "mw.example,*.site.example")).toBe(false);
    expect(refusalOf({ argv: ["--http-allowed-hosts", "http://mw.example"] })).toContain("http.allowed_hosts");
    expect(refusalOf({ argv: ["--http-allowed-origins", "mw.example"] })).toContain("http.allowed_origins");
  });

  test("the greatest age of tokens is warned of until somebody has decided on it", () => {
    const loaded = load({ argv: [] });
    expect(loaded.config.auth.tokenMaxAge).toBe(90 * 86_400_000);
    expect(warnOfStricterDefaults(loaded).join()).toContain("auth.token_max_age is 90d by default");
    const off = load({ argv: ["--auth-token-max-age", "off"] });
    expect(off.config.auth.tokenMaxAge).toBeNull();
    expect(warnOfStricterDefaults(off).join()).not.toContain("auth.token_max_age");
    expect(() => load({ argv: ["--auth-token-max-age", "0s"] })).toThrow("from 1h to 3650d, or off");
  });

  test("names of roles that a mapping leaves out are pointed at, since they give nothing", () => {
    const oidc = (roles: string) => [
      ...["--auth-oidc-issuer", "https://id.example", "--auth-oidc-audience", "m"],
      ...["--auth-oidc-jwks-url", "https://id.example/keys", "--auth-oidc-roles", roles],
    ];
    expect(load({ argv: oidc("{}") }).warnings).toEqual([]);
    expect(load({ argv: oidc('{"operator":["operator"]}') }).warnings).toEqual([]);
    expect(load({ argv: oidc('{"dc-ops":["operator"]}') }).warnings.join()).toContain("auth.oidc.roles maps 1 value");
  });

  test.each([
    ["serve", "https://rms.example:8801", true],
    ["serve", "http://rms.example:8801", false],
    ["serve", "http://127.0.0.1:8801", false],
    ["dev", "http://rms.example:8801", false],
    ["dev", "http://127.0.0.1:8801", true],
  ] as const)("a rack manager, in %s at %s: %s", (profile, url, isAllowed) => {
    const argv = ["--rack-manager-url", url, "--rack-manager-api", "d"];
    if (isAllowed) expect(load({ argv, profile }).warnings).toEqual([]);
    else expect(refusalOf({ argv, profile })).toContain("rack_manager.url must begin with https");
  });

  test("a rack manager needs its numbering, and a key its certificate", () => {
    expect(refusalOf({ argv: ["--rack-manager-url", "https://rms.example"] })).toContain("rack_manager.api");
    expect(refusalOf({ argv: ["--rack-manager-key-file", "a"] })).toContain("belong together");
  });
});

describe("the data directory", () => {
  test.each([
    [{ ...host, uid: 0 }, { HOME: "/root" }, "/var/lib/millwright"],
    [host, { XDG_STATE_HOME: "/state", HOME: "/home/x" }, "/state/millwright"],
    [host, { XDG_STATE_HOME: "relative", HOME: "/home/x" }, "/home/x/.local/state/millwright"],
    [host, {}, "/home/pat/.local/state/millwright"],
  ])("of %j with %j is %s", (who, env, expected) => {
    expect(load({ host: who, env }).config.dataDir).toBe(expected);
  });

  test("without any home must be set, and can be", () => {
    expect(refusalOf({ host: { ...host, homedir: null } })).toContain("Set MILLWRIGHT_DATA_DIR");
    expect(load({ host: { ...host, homedir: null }, env: { MILLWRIGHT_DATA_DIR: "/d" } }).config.dataDir).toBe("/d");
  });
});

describe("the reference", () => {
  test("gives every setting a file key, a variable and a flag of its own, a rule and a description", () => {
    const rows = describeConfig();
    for (const column of ["key", "env", "flag"] as const)
      expect(new Set(rows.map((row) => row[column])).size).toBe(rows.length);
    for (const row of rows) {
      expect(row.rule).not.toBe("");
      expect(row.doc).toMatch(/\.$/);
    }
    expect(rows.find(({ key }) => key === "data_dir")).toMatchObject({
      env: "MILLWRIGHT_DATA_DIR",
      flag: "--data-dir",
    });
  });

  test("monitoring is often enough to show an outside change within 30 seconds", () => {
    expect(load().config.monitor.interval).toBeLessThanOrEqual(seconds(15));
  });
});

test("a database behind a Unix socket is accepted as libpq writes it, and refused when it is no URL at all", () => {
  const url = "postgresql://mw@/mw?host=/run/postgresql";
  expect(load({ env: { MILLWRIGHT_DATABASE_URL: url } }).config.database.url).toBe(url);
  expect(refusalOf({ env: { MILLWRIGHT_DATABASE_URL: "postgresql://mw@:/mw" } })).toContain("postgresql://");
});

describe("printing", () => {
  test("shows each value with its source, and no password", () => {
    const printed = printConfig(
      load({
        env: { MILLWRIGHT_DATABASE_URL: "postgres://mw:hunter2@db:5432/mw?sslpassword=hunter3" },
        argv: ["--log-level", "warn"],
      }),
    );
    expect(printed).toMatch(/log\.level\s+warn\s+flag --log-level/);
    expect(printed).toMatch(/grpc\.listen\s+127\.0\.0\.1:50051\s+default/);
    expect(printed).toContain("postgres://mw:***@db:5432/mw");
    expect(printed).not.toContain("hunter");
  });

  test("a bad secret is not repeated in the complaint", () => {
    const message = refusalOf({ env: { MILLWRIGHT_DATABASE_URL: "mysql://mw:hunter2@db/mw" } });
    expect(message).toContain("MILLWRIGHT_DATABASE_URL");
    expect(message).not.toContain("hunter2");
    expect(refusalOf({ file: "auth: {tokens: [{name: a, roles: [viewer], sha256: mw_raw_token}]}" })).not.toContain(
      "mw_raw_token",
    );
  });
});
