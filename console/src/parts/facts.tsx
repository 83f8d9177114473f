import type { ReactNode } from "react";
import classes from "./facts.module.css";

export interface Fact {
  readonly name: string;
  /** Empty: it is left out. */
  readonly value: ReactNode;
  readonly isCode?: boolean;
}

/** Names and values, of which those without a value are left out. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  const known = facts.filter(({ value }) => value !== undefined && value !== null && value !== "");
  return (
    <dl className={classes.facts}>
      {known.map(({ name, value, isCode }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd className={isCode ? "mono" : undefined}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
