import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import type { AgentRunOptions } from "./run.ts";

const load = () => import("./run.ts");

const EXAMPLES = `
Examples:
  millwright agent run --directory /etc/millwright-agent
  millwright agent run --server https://millwright.example.com --node fn-0123456789ab --enroll-token-file token

agent.json in the directory says what the agent may do; it does nothing else, and runs nothing that the server sends:
  {"drain": {"command": ["/usr/local/sbin/drain-node"]}, "storage": {"devices": ["/dev/nvme1n1"]},
   "gpu": {"command": ["/usr/local/sbin/scrub-gpus"]}, "validate": {"command": ["/usr/local/sbin/is-clean"]},
   "health": {"command": ["/usr/local/sbin/is-healthy"], "timeout_seconds": 20}, "uninstall": {"command": ["/usr/local/sbin/forget"]}}`;

/** What runs on a fleet node. */
export function addAgentCommands(program: Command, run: Run): void {
  const agent = program.command("agent").description("the agent of a fleet node: runs on the node itself");
  agent
    .command("run")
    .description("enrol if need be, say how the node is, and do what the server asks, until it is uninstalled")
    .option("--directory <dir>", "where node.json, enrolment-token and agent.json lie", "/etc/millwright-agent")
    .option("--node <id>", "the node that this host is; node.json when left out")
    .option("--enroll-token-file <file>", "the single-use token; enrolment-token in the directory when left out")
    .option("--state-dir <dir>", "where the agent keeps who it is", "/var/lib/millwright-agent")
    .addHelpText("after", EXAMPLES)
    .action((options: AgentRunOptions) => run(async (session) => (await load()).runAgentCommand(session, options)));
}
