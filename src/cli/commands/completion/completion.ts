import { Argument, type Command } from "commander";
import type { Run } from "../../client/session.ts";

export function addCompletionCommand(program: Command, run: Run): void {
  program
    .command("completion")
    .addArgument(new Argument("<shell>", "the shell to complete in").choices(["bash", "zsh", "fish"]))
    .description("print a completion script")
    .addHelpText(
      "after",
      '\nExamples:\n  eval "$(millwright completion bash)"\n  millwright completion zsh > ~/.zsh/completions/_millwright\n  millwright completion fish > ~/.config/fish/completions/millwright.fish',
    )
    .action((shell: "bash" | "zsh" | "fish") =>
      run(async ({ terminal }) => {
        const { completionScript } = await import("../../completion.ts");
        const { describeCommand } = await import("../../describe.ts");
        terminal.stdout.write(completionScript(shell, describeCommand(program)));
        return undefined;
      }),
    );
}
