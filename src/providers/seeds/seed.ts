import ssh2 from "ssh2";
import { parse, stringify } from "yaml";
import { SEED_SPECS, type SeedFile, type SeedInput, type SeedWriter } from "../../capabilities/seeds/seed.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/lifecycle.ts";
import { writeVolume } from "./iso9660.ts";
import { withCloudUser, withIgnitionUser } from "./seed-users.ts";

export const seedWriter: SeedWriter = {
  signInOf({ username, privateKey }) {
    const key = ssh2.utils.parseKey(privateKey);
    if (key instanceof Error) return null;
    return { username, publicKey: `${key.type} ${key.getPublicSSH().toString("base64")}` };
  },
  filesOf: (input) => writeSeed(input),
  mediumOf(input, at) {
    const { label } = SEED_SPECS[input.format];
    return label === null ? undefined : writeVolume(label, writeSeed(input), at);
  },
  whyUnreadable(document) {
    if (document.startsWith("#cloud-config")) return whyNoMapping("YAML", () => parse(document) ?? {});
    return document.trimStart().startsWith("{") ? whyNoMapping("JSON", () => JSON.parse(document)) : undefined;
  },
};

function whyNoMapping(language: string, read: () => unknown): string | undefined {
  try {
    return isJsonObject(read()) ? undefined : `must be a mapping in ${language}`;
  } catch (error) {
    // The first line alone: the rest repeats the document, and may repeat a secret of it.
    const [why = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
    return `is not ${language}: ${why.slice(0, 200)}`;
  }
}

/** The files of a seed, by its format. */
function writeSeed(input: SeedInput): SeedFile[] {
  switch (input.format) {
    case "nocloud":
      return noCloud(input, withOurs(cloudConfigOf(input), input));
    case "autoinstall": {
      const userData = autoinstall(input);
      return [...noCloud(input, userData), ...(input.isInImage ? [autoinstallFile(input, userData)] : [])];
    }
    case "kickstart":
      return [file("ks.cfg", kickstart(input))];
    case "ignition":
      return [file("config.ign", `${JSON.stringify(ignition(input), null, 2)}\n`)];
  }
}

const file = (name: string, text: string): SeedFile => ({ name, content: Buffer.from(text, "utf8") });

function noCloud({ machineId, instanceId }: SeedInput, userData: JsonObject): SeedFile[] {
  const metaData = { "instance-id": instanceId, "local-hostname": hostNameOf(machineId) };
  return [
    file("meta-data", stringify(metaData)),
    file("user-data", `#cloud-config\n${stringify(userData, { lineWidth: 0 })}`),
    file("vendor-data", "#cloud-config\n{}\n"),
  ];
}

const hostNameOf = (machineId: string): string =>
  machineId
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
    .slice(0, 63)
    .replace(/^-+|-+$/g, "") || "node";

function cloudConfigOf({ document }: SeedInput): JsonObject {
  const parsed: unknown = document === null ? {} : parse(document);
  return isJsonObject(parsed) ? parsed : {};
}

const listOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);
const objectOf = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {});

/** Cloud-config of the document, with what we need beside what its author asked for. */
function withOurs(config: JsonObject, { stamp, phoneHome, ...more }: SeedInput): JsonObject {
  const stampFile = { path: stamp.path, owner: "root:root", permissions: "0644", content: stamp.text };
  return {
    ...config,
    ...signInOf(config, more.signIn),
    write_files: [...listOf(config.write_files), stampFile],
    ...phoneHomeOf(config, phoneHome),
  };
}

const phoneHomeOf = ({ phone_home }: JsonObject, url: string | null): JsonObject =>
  phone_home !== undefined || url === null ? {} : { phone_home: { url, post: ["instance_id"], tries: 5 } };

function signInOf(config: JsonObject, signIn: SeedInput["signIn"]): JsonObject {
  if (signIn === null) return {};
  if (signIn.username === "root")
    return { disable_root: false, ssh_authorized_keys: [...listOf(config.ssh_authorized_keys), signIn.publicKey] };
  return { users: withCloudUser(config.users, signIn) };
}

/** What is said of the installed system goes where Ubuntu's installer hands it on; the stamp is written by the installer itself. */
function autoinstall(input: SeedInput): JsonObject {
  const { autoinstall: given, ...config } = cloudConfigOf(input);
  const { phone_home: _, ...installed } = config;
  const asked = objectOf(given);
  const late = [...listOf(asked["late-commands"]), writing(input.stamp, "/target")];
  const userData = { ...objectOf(asked["user-data"]), ...installed };
  const isTheirs = input.signIn !== null && objectOf(asked.identity).username === input.signIn.username;
  return {
    autoinstall: {
      version: 1,
      storage: { layout: { name: "direct" } },
      ...asked,
      ssh: { "install-server": true, ...objectOf(asked.ssh), ...(isTheirs && keysOfIdentity(asked.ssh, input.signIn)) },
      "user-data": { ...userData, ...(isTheirs ? {} : signInOf(userData, input.signIn)) },
      "late-commands": late,
    },
    ...phoneHomeOf(config, input.phoneHome),
    ...(config.phone_home !== undefined && { phone_home: config.phone_home }),
  };
}

/** The account that `identity` has the installer make takes its keys from here. Named among the users too, it would be made twice. */
const keysOfIdentity = (ssh: Json | undefined, signIn: SeedInput["signIn"]): JsonObject => ({
  "authorized-keys": [...listOf(objectOf(ssh)["authorized-keys"]), ...(signIn ? [signIn.publicKey] : [])],
});

/** What Ubuntu's installer reads from the root of its own medium. Cloud-init reads nothing there, so that the installer itself calls. */
function autoinstallFile({ phoneHome }: SeedInput, { autoinstall: section }: JsonObject): SeedFile {
  const asked = objectOf(section);
  const calls = phoneHome === null ? [] : [`curl -fsS -X POST '${phoneHome}' || true`];
  const early = [...calls, ...listOf(asked["early-commands"])];
  return file("autoinstall.yaml", stringify({ ...asked, "early-commands": early }, { lineWidth: 0 }));
}

/** A shell command that writes the stamp, whatever is in it. */
const writing = ({ path, text }: SeedInput["stamp"], below = ""): string =>
  `printf %s ${Buffer.from(text, "utf8").toString("base64")} | base64 -d >${below}${path}`;

function kickstart({ document, stamp, signIn, phoneHome }: SeedInput): string {
  const parts = [
    (document ?? "").trimEnd(),
    ...(signIn === null ? [] : [`sshkey --username=${signIn.username} "${signIn.publicKey}"`]),
    ...(phoneHome === null ? [] : ["%pre", `curl -fsS -X POST '${phoneHome}' || true`, "%end"]),
    "%post",
    writing(stamp),
    "%end",
  ];
  return `${parts.join("\n")}\n`;
}

function ignition({ document, stamp, signIn }: SeedInput): JsonObject {
  const parsed: unknown = document === null ? {} : JSON.parse(document);
  const config = isJsonObject(parsed) ? parsed : {};
  const [storage, passwd] = [objectOf(config.storage), objectOf(config.passwd)];
  const source = `data:;base64,${Buffer.from(stamp.text, "utf8").toString("base64")}`;
  const stampFile = { path: stamp.path, mode: 0o644, overwrite: true, contents: { source } };
  // Ignition refuses a config that names a file twice.
  const files = listOf(storage.files).filter((each) => !isJsonObject(each) || each.path !== stamp.path);
  return {
    ...config,
    ignition: { version: "3.3.0", ...objectOf(config.ignition) },
    storage: { ...storage, files: [...files, stampFile] },
    passwd: { ...passwd, users: signIn === null ? listOf(passwd.users) : withIgnitionUser(passwd.users, signIn) },
  };
}
