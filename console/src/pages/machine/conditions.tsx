import type { Condition } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { harmless } from "../../api/hostile-text.ts";
import { Age } from "../../parts/age.tsx";
import classes from "./conditions.module.css";

/** What is known to be true or false of a machine, with why and since when. Whether either is good depends on its phase: so both are grey. */
export function Conditions({ conditions }: { readonly conditions: readonly Condition[] }) {
  if (conditions.length === 0) return <p className="dim">Nobody has looked yet.</p>;
  return (
    <table className={classes.conditions}>
      <tbody>
        {conditions.map(({ type, status, reason, message, lastTransition }) => (
          <tr key={type}>
            <th scope="row">
              <span className={classes.mark} data-holds={status} aria-hidden>
                {status ? "✓" : "–"}
              </span>
              {type}
            </th>
            <td>{status ? "yes" : "no"}</td>
            <td className={classes.why}>
              {harmless(message || reason)} {message !== "" && <span className="dim">({reason})</span>}
            </td>
            <td className="number dim">
              <Age at={lastTransition} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
