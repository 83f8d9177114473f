import ssh2 from "ssh2";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { type SeedFormat, type SeedInput, whyDocumentUnfit } from "../../capabilities/seeds/seed.ts";
import { seedWriter } from "./seed.ts";

const STAMP = "image=ubuntu\ntoken=t1\n";
const { private: privateKey, public: KEY } = aKeyPair();

/** Of three hundred keys that ssh2 makes, it cannot read one itself. */
function aKeyPair() {
  for (;;) {
    const pair = ssh2.utils.generateKeyPairSync("ed25519");
    if (!(ssh2.utils.parseKey(pair.private) instanceof Error)) return pair;
  }
}

const seed = (format: SeedFormat, change: Partial<SeedInput> = {}) =>
  Object.fromEntries(
    seedWriter
      .filesOf({
        format,
        machineId: "M_Rack1.03",
        instanceId: "run-1-a",
        stamp: { path: "/etc/millwright-image", text: STAMP },
        signIn: seedWriter.signInOf({ username: "root", privateKey }),
        document: null,
        phoneHome: "http://server/phone-home",
        ...change,
      })
      .map(({ name, content }) => [name, content.toString()]),
  );
const DOCUMENT = `#cloud-config
packages: [containerd]
ssh_authorized_keys: [theirs]
write_files:
  - { path: /etc/motd, content: hi }
`;

describe("a seed for NoCloud", () => {
  test("says what the document says, and what every installation needs beside it", () => {
    const files = seed("nocloud", { document: DOCUMENT });
    expect(files["user-data"]?.split("\n")[0]).toBe("#cloud-config");
    expect(parse(files["user-data"] ?? "")).toEqual({
      packages: ["containerd"],
      disable_root: false,
      ssh_authorized_keys: ["theirs", KEY],
      write_files: [
        { path: "/etc/motd", content: "hi" },
        { path: "/etc/millwright-image", owner: "root:root", permissions: "0644", content: STAMP },
      ],
      phone_home: { url: "http://server/phone-home", post: ["instance_id"], tries: 5 },
    });
    expect(parse(files["meta-data"] ?? "")).toEqual({ "instance-id": "run-1-a", "local-hostname": "m-rack1-03" });
  });

  test("makes a user of its own for who does not sign in as root, beside those of the document", () => {
    const signIn = seedWriter.signInOf({ username: "ops", privateKey });
    const usersOf = (document: string | null) => parse(seed("nocloud", { signIn, document })["user-data"] ?? "").users;
    expect(usersOf(null)).toEqual(["default", expect.objectContaining({ name: "ops", ssh_authorized_keys: [KEY] })]);
    expect(usersOf("#cloud-config\nusers: [{ name: a }]\n")).toEqual([
      { name: "a" },
      expect.objectContaining({ name: "ops" }),
    ]);
  });

  test("leaves it to the document whom the system calls", () => {
    const document = "#cloud-config\nphone_home: { url: http://theirs }\n";
    expect(parse(seed("nocloud", { document })["user-data"] ?? "").phone_home).toEqual({ url: "http://theirs" });
  });
});

test("a seed for autoinstall keeps the author's sections, and has the installer write the stamp", () => {
  const document = `#cloud-config
autoinstall: { version: 1, storage: { layout: { name: lvm } }, late-commands: [first] }
packages: [containerd]
`;
  const { autoinstall, ...rest } = parse(seed("autoinstall", { document })["user-data"] ?? "");
  expect(autoinstall).toMatchObject({
    version: 1,
    storage: { layout: { name: "lvm" } },
    ssh: { "install-server": true },
    "user-data": { packages: ["containerd"], ssh_authorized_keys: [KEY] },
  });
  const base64 = Buffer.from(STAMP).toString("base64");
  expect(autoinstall["late-commands"]).toEqual([
    "first",
    `printf %s ${base64} | base64 -d >/target/etc/millwright-image`,
  ]);
  expect(rest).toEqual({ phone_home: expect.anything() });
});

test("a seed for autoinstall gives the key to the account that the author has the installer make, and makes no second one", () => {
  const signIn = seedWriter.signInOf({ username: "ops", privateKey });
  const document = "#cloud-config\nautoinstall: { identity: { username: ops }, ssh: { authorized-keys: [theirs] } }\n";
  const { autoinstall } = parse(seed("autoinstall", { document, signIn })["user-data"] ?? "");
  expect(autoinstall.ssh).toEqual({ "install-server": true, "authorized-keys": ["theirs", KEY] });
  expect(autoinstall["user-data"]).toEqual({});
});

test("a seed for kickstart is the document with our sections behind it", () => {
  const text = seed("kickstart", { document: "text\nreboot\n" })["ks.cfg"] ?? "";
  expect(text.startsWith(`text\nreboot\nsshkey --username=root "${KEY}"\n%pre\n`)).toBe(true);
  expect(text).toContain(
    `%post\nprintf %s ${Buffer.from(STAMP).toString("base64")} | base64 -d >/etc/millwright-image\n%end\n`,
  );
});

test("a seed for Ignition is the document with our file and user beside its own", () => {
  const document = JSON.stringify({ ignition: { version: "3.4.0" }, storage: { files: [{ path: "/a" }] } });
  expect(JSON.parse(seed("ignition", { document })["config.ign"] ?? "")).toEqual({
    ignition: { version: "3.4.0" },
    storage: { files: [{ path: "/a" }, expect.objectContaining({ path: "/etc/millwright-image" })] },
    passwd: { users: [{ name: "root", sshAuthorizedKeys: [KEY] }] },
  });
});

test.each([
  ["nocloud", "#cloud-config\n", true],
  ["nocloud", "text\n", false],
  ["autoinstall", "{}", false],
  ["ignition", " {}", true],
  ["ignition", "#cloud-config\n", false],
  ["kickstart", "text\n", true],
  ["kickstart", "#cloud-config\n", false],
] as const)("for %s, the document %j fits: %s", (format, document, fits) => {
  expect(whyDocumentUnfit(format, document) === undefined).toBe(fits);
});

test.each([
  ["#cloud-config\na: [", /^is not YAML: /],
  ["#cloud-config\n- a\n", /^must be a mapping in YAML$/],
  ["{ no json", /^is not JSON: /],
  ["#cloud-config\n", undefined],
  ["text\n", undefined],
])("the document %j is refused: %s", (document, why) => {
  if (why === undefined) expect(seedWriter.whyUnreadable(document)).toBeUndefined();
  else expect(seedWriter.whyUnreadable(document)).toMatch(why);
});
