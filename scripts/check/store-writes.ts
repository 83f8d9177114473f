import { isTest, type SourceFile } from "./source-files.ts";

/** Statements as the store writes them: in small letters or capitals, with the table's name or a placeholder for it. */
const WRITES = /\b(insert\s+into|delete\s+from|update\s+[\w.${}]+(\s+\w+)?\s+set)\b/i;
const FAIL_POINT = /\bfailPoint\(/;

/**
 * What writes to the database can be interrupted at any moment. A file that does so has a fail point, and the chaos tests have a
 * kill for every fail point: so a new writer cannot be added without a test that dies in it.
 */
export function judgeWrites({ path, text }: SourceFile): string | undefined {
  if (!path.startsWith("src/store/") || isTest(path)) return undefined;
  if (!WRITES.test(text) || FAIL_POINT.test(text)) return undefined;
  return `${path}: writes to the database and has no failPoint, so no test can die in it`;
}
