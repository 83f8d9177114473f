import type { Session } from "../../client/session.ts";
import { readRun } from "./record.ts";
import { printRun } from "./view.ts";

export async function showRun(session: Session, id: string): Promise<undefined> {
  await printRun(session, await readRun(session, id));
}
