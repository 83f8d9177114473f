/** What a node is told so that its agent can enrol. */
export interface AgentBootstrap {
  /** Where the agent reaches the server. */
  readonly server: string;
  readonly nodeId: string;
  /** The single-use token. */
  readonly token: string;
}

/** Where the agent finds what it was told, and, in a file of its own, what the owner of the host lets it do. */
const AGENT_DIRECTORY = "/etc/millwright-agent";
const SERVICE = "millwright-agent.service";

/** The image or the site's bundle brings the `millwright` command, and `agent.json` with what the agent may do. */
const UNIT = `[Unit]
Description=Millwright agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/env millwright agent run --directory ${AGENT_DIRECTORY}
StateDirectory=millwright-agent
Restart=on-failure
RestartSec=5

[Install]
WantedBy=multi-user.target
`;

interface BootstrapFile {
  readonly path: string;
  readonly permissions: string;
  /** By which a script is told the content. */
  readonly variable: string;
  readonly contentOf: (bootstrap: AgentBootstrap) => string;
}

const FILES: readonly BootstrapFile[] = [
  {
    path: `${AGENT_DIRECTORY}/node.json`,
    permissions: "0644",
    variable: "MILLWRIGHT_NODE",
    contentOf: ({ server, nodeId }) => `${JSON.stringify({ server, node: nodeId })}\n`,
  },
  {
    path: `${AGENT_DIRECTORY}/enrolment-token`,
    permissions: "0600",
    variable: "MILLWRIGHT_ENROLMENT_TOKEN",
    contentOf: ({ token }) => `${token}\n`,
  },
  {
    path: `/etc/systemd/system/${SERVICE}`,
    permissions: "0644",
    variable: "MILLWRIGHT_UNIT",
    contentOf: () => UNIT,
  },
];

const COMMANDS = [
  ["systemctl", "daemon-reload"],
  ["systemctl", "enable", SERVICE],
  ["systemctl", "restart", SERVICE],
] as const;

/** As user data of cloud-init. JSON is YAML as well, and quotes whatever a value may hold. */
export function cloudConfigOf(bootstrap: AgentBootstrap): string {
  const files = FILES.map(({ path, permissions, contentOf }) => ({ path, permissions, content: contentOf(bootstrap) }));
  return `#cloud-config\n${JSON.stringify({ write_files: files, runcmd: COMMANDS }, null, 2)}\n`;
}

/**
 * The same as a script for a shell of root; run again, it leaves the same behind. What differs from node to node comes in variables, and
 * is never read as a command. Of a script over SSH only the standard output is kept: it says there as well what went wrong.
 */
export const SEED_SCRIPT = `set -eu
exec 2>&1
command -v millwright >/dev/null || { echo 'this host has no millwright command' >&2; exit 3; }
umask 077
mkdir -p ${AGENT_DIRECTORY}
rm -f /var/lib/millwright-agent/identity.json
put() { printf '%s' "$2" > "$1.new"; chmod "$3" "$1.new"; mv "$1.new" "$1"; }
${FILES.map(({ variable, path, permissions }) => `put ${path} "$${variable}" ${permissions}`).join("\n")}
${COMMANDS.map((words) => words.join(" ")).join("\n")}
`;

export const seedVariablesOf = (bootstrap: AgentBootstrap): Readonly<Record<string, string>> =>
  Object.fromEntries(FILES.map(({ variable, contentOf }) => [variable, contentOf(bootstrap)]));

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The same script with its variables set, as one line, which the owner of a host runs on it. */
export function bootstrapCommandOf(bootstrap: AgentBootstrap): string {
  const variables = Object.entries(seedVariablesOf(bootstrap)).map(([name, value]) => `${name}=${quoted(value)}\n`);
  const script = Buffer.from(`${variables.join("")}${SEED_SCRIPT}`).toString("base64");
  return `echo ${script} | base64 -d | sudo sh`;
}
