import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import { addListOptions, type ListOptions } from "../options/list-options.ts";

export function addPlanCommands(program: Command, run: Run): void {
  const load = () => import("./manage.ts");
  const plan = program.command("plan").description("plans: what runs do, step by step");
  addListOptions(plan.command("list").description("list plans, the built-in ones too"), {
    filter: "'built_in=false AND step_kind=repave'",
    order: "'created_at desc'",
  }).action((options: ListOptions) => run(async (session) => (await load()).listPlans(session, options)));
  plan
    .command("show")
    .argument("<id>", "a plan")
    .description("show a plan with its steps")
    .action((id: string) => run(async (session) => (await load()).showPlan(session, id)));
  plan
    .command("create")
    .description("create a plan; plans are immutable, so a changed plan needs a new id")
    .requiredOption("-f, --file <file>", "YAML or JSON as `plan show -o yaml` prints it, or - for standard input")
    .addHelpText(
      "after",
      `\nExample of a file:
  plan_id: my-reboot
  display_name: Reboot and check
  steps:
    - name: reboot
      timeout_seconds: 300
      max_retries: 1
      reboot: {mode: bmc}
    - name: check
      ssh: {script_ref: verify_network.sh}`,
    )
    .action((options: { file: string }) => run(async (session) => (await load()).createPlan(session, options)));
  plan
    .command("delete")
    .argument("<id>", "a plan that no run refers to")
    .description("delete a plan that is not built in")
    .option(...YES_OPTION)
    .action((id: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).deletePlan(session, id, options)),
    );
}
