import { expect, test } from "vitest";
import { type DiscoveryOptions, discoverServer, parseServer } from "./discover-server.ts";
import { CliError } from "./errors.ts";

interface World {
  readonly env?: Record<string, string>;
  readonly files?: Record<string, string>;
  readonly uid?: number;
  readonly homedir?: string | undefined;
}

const discover = (options: DiscoveryOptions, { env = {}, files = {}, uid = 1000, ...rest }: World = {}) =>
  discoverServer(options, {
    env,
    readFile: (path) => files[path],
    user: () => ({ uid, homedir: "/home/op", ...rest }),
  });

const endpoints = JSON.stringify({ http: "http://127.0.0.1:8080", grpc: "127.0.0.1:50051", pid: 1 });
const local = (dir: string) => ({ [`${dir}/endpoints.json`]: endpoints, [`${dir}/dev-token`]: "dev-secret\n" });
const found = { url: "http://127.0.0.1:8080", token: "dev-secret" };

test.each<[string, DiscoveryOptions, World]>([
  ["root's own place", {}, { uid: 0, files: local("/var/lib/millwright") }],
  ["the home directory", {}, { files: local("/home/op/.local/state/millwright") }],
  ["XDG_STATE_HOME", {}, { env: { XDG_STATE_HOME: "/state" }, files: local("/state/millwright") }],
  [
    "HOME, which wins over the password database",
    {},
    { env: { HOME: "/h" }, files: local("/h/.local/state/millwright") },
  ],
  [
    "the home directory when the environment has relative paths",
    {},
    { env: { XDG_STATE_HOME: "s", HOME: "h" }, files: local("/home/op/.local/state/millwright") },
  ],
  ["MILLWRIGHT_DATA_DIR", {}, { env: { MILLWRIGHT_DATA_DIR: "/d" }, files: local("/d") }],
  [
    "--data-dir, which wins over the environment",
    { dataDir: "/e" },
    { env: { MILLWRIGHT_DATA_DIR: "/d" }, files: local("/e") },
  ],
])("a local server and its token are found in %s", (_where, options, world) => {
  expect(discover(options, world)).toEqual(found);
});

test("flags win over the environment", () => {
  const env = { MILLWRIGHT_SERVER: "https://env.example.com", MILLWRIGHT_TOKEN: "from-env" };
  expect(discover({}, { env })).toEqual({ url: "https://env.example.com", token: "from-env" });
  expect(discover({ server: "https://flag.example.com", token: "from-flag" }, { env })).toEqual({
    url: "https://flag.example.com",
    token: "from-flag",
  });
});

test("the dev token is never sent to another server", () => {
  expect(
    discover({ server: "http://127.0.0.1:9999" }, { uid: 0, files: local("/var/lib/millwright") }).token,
  ).toBeUndefined();
});

test("the dev token is used when the local server is named", () => {
  expect(discover({ server: "127.0.0.1:8080" }, { uid: 0, files: local("/var/lib/millwright") })).toEqual(found);
});

test("a token file is read, and its line break is no part of the token", () => {
  expect(discover({ server: "https://m.example.com", tokenFile: "/t" }, { files: { "/t": "abc\n" } }).token).toBe(
    "abc",
  );
});

test("without a server, the message names what to start", () => {
  try {
    discover({});
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(CliError);
    expect(error).toMatchObject({
      exitCode: 6,
      message: expect.stringContaining("no server is running here"),
      hint: expect.stringContaining("npm start"),
    });
  }
});

test.each<[string, DiscoveryOptions, World, RegExp]>([
  ["a token file that is not there", { tokenFile: "/nope" }, {}, /--token-file: \/nope does not exist/],
  ["an empty token file", { tokenFile: "/t" }, { files: { "/t": "\n" } }, /--token-file: \/t is empty/],
  ["both ways to give a token", { token: "a", tokenFile: "/t" }, {}, /exclude each other/],
  ["a token with a line break", { token: "a\nb" }, {}, /--token: a token is one line/],
  ["an address that is none", { server: "ftp://x" }, {}, /--server: "ftp:\/\/x" is not an HTTP address/],
  ["a bad address in the environment", {}, { env: { MILLWRIGHT_SERVER: "http://" } }, /MILLWRIGHT_SERVER/],
  [
    "a damaged endpoints file",
    {},
    { uid: 0, files: { "/var/lib/millwright/endpoints.json": "{" } },
    /endpoints.json does not say/,
  ],
])("%s is refused by name", (_what, options, world, message) => {
  expect(() => discover(options, world)).toThrow(message);
});

test("a refused token is not repeated", () => {
  expect(() => discover({ server: "http://kim:s3cret@host" })).toThrow(/^(?!.*s3cret).*user name or password/);
  expect(() => discover({ token: "s3cret value" })).toThrow(/^(?!.*s3cret)/);
});

test.each([
  ["127.0.0.1:8080", "http://127.0.0.1:8080"],
  ["localhost:1", "http://localhost:1"],
  ["millwright.example.com", "https://millwright.example.com"],
  ["http://millwright.example.com/", "http://millwright.example.com"],
  ["https://example.com/millwright/", "https://example.com/millwright"],
])("%s means %s", (text, url) => {
  expect(parseServer(text, "--server")).toBe(url);
});
