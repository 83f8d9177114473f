import { type Command, Option } from "commander";
import type { ServerVocabulary } from "../../client/server-vocabulary.ts";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import { addListOptions, type ListOptions } from "../options/list-options.ts";
import type { CreateTokenOptions } from "./manage.ts";

export function addTokenCommands(program: Command, run: Run, { roles }: ServerVocabulary): void {
  const load = () => import("./manage.ts");
  const token = program.command("token").description("bearer tokens for people and programs");
  token
    .command("create")
    .argument("<name>", "who uses it; recorded with every call")
    .description("create a token; it is printed only once")
    .addOption(
      new Option("--role <role...>", "what the caller may do; several values, or the option several times")
        .choices(roles)
        .makeOptionMandatory(),
    )
    .option(
      "--scope <limit...>",
      "what it is limited to besides, such as methods=runs,machines, racks=r1,r2, clusters=a, customers=b or labels=env=test; several limits must all be kept to",
    )
    .option("--expires-in <duration>", "when it ends, such as 30d; at the server's auth.token_max_age at the latest")
    .addHelpText(
      "after",
      "\nRoles: admin may do everything; operator may also change things; viewer may only read. The others are the principals of\nforge.Forge clients. A token cannot be changed: revoke it and create another.\n\nExamples:\n  millwright token create ci --role operator --expires-in 30d > token\n  millwright token create repaver --role operator --scope methods=runs,machines > token\n  millwright token create rack-crew --role operator --scope racks=rack-1,rack-2 > token",
    )
    .action((name: string, options: CreateTokenOptions) =>
      run(async (session) => (await load()).createToken(session, name, options)),
    );
  addListOptions(token.command("list").description("list tokens, without the tokens themselves"), {
    filter: "'status=valid AND role=admin'",
    order: "'last_used_at desc'",
  }).action((options: ListOptions) => run(async (session) => (await load()).listTokens(session, options)));
  token
    .command("revoke")
    .argument("<id>", "a token's id, as the list shows it")
    .description("revoke a token at once")
    .option(...YES_OPTION)
    .action((id: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).revokeToken(session, id, options)),
    );
}
