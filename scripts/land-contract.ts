/**
 * `npm run contract:land`: makes the contract in `proto/` the one that later changes must not break, and the migrations those that
 * stay as they are.
 *
 * To be run when a version lands. A change that breaks clients is refused, unless `-- --breaking` says that it is meant.
 */
import { findBreakingChanges, LANDED_CONTRACT } from "./check/landed-contract.ts";
import { findRewrittenMigrations, landMigrations } from "./check/landed-migrations.ts";
import { root, runTool } from "./run-tool.ts";

const faults = process.argv.includes("--breaking") ? [] : await findBreakingChanges(root);
if (faults.length > 0) {
  console.error(["The contract breaks clients of the one that landed:", ...faults].join("\n"));
  process.exit(1);
}
const rewritten = await findRewrittenMigrations();
if (rewritten.length > 0) {
  console.error(rewritten.join("\n"));
  process.exit(1);
}
// Without comments: they change often and break nobody.
const { code, output } = await runTool("buf", ["build", "--exclude-source-info", "--output", LANDED_CONTRACT]);
if (code !== 0) console.error(output);
else {
  await landMigrations();
  console.log(`wrote ${LANDED_CONTRACT}, and the list of migrations`);
}
process.exitCode = code === 0 ? 0 : 1;
