import type { Queryable, Statement } from "../../src/store/postgres/database.ts";

/** The plans of the statements that `call` sends, for the very values that it sends; nothing of it is carried out. */
export async function plansOf(db: Queryable, call: (db: Queryable) => Promise<unknown>): Promise<string> {
  const plans: string[] = [];
  const explain = async <Row extends object>(statement: string | Statement, values?: readonly unknown[]) => {
    const { text, values: own }: Statement = typeof statement === "string" ? { text: statement } : statement;
    const lines = await db.query<{ "QUERY PLAN": string }>(`explain ${text}`, values ?? own ?? []);
    plans.push(lines.map((line) => line["QUERY PLAN"]).join("\n"));
    return [] as Row[];
  };
  await call({ query: explain, execute: async (statement, values) => (await explain(statement, values)).length });
  return plans.join("\n\n");
}
