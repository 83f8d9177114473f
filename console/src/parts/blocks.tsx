import type { ReactNode } from "react";
import classes from "./blocks.module.css";
import { Facts as FactList } from "./facts.tsx";

/** A titled part of a page. */
export const Block = ({
  title,
  isName = false,
  children,
}: {
  readonly title: string;
  /** The title is a name of somebody's, and is written as it is. */
  readonly isName?: boolean;
  readonly children: ReactNode;
}) => (
  <section className={classes.block}>
    <h2 data-name={isName || undefined}>{title}</h2>
    {children}
  </section>
);

/** Parts beside each other where there is room. */
export const Columns = ({ children }: { readonly children: ReactNode }) => (
  <div className={classes.columns}>{children}</div>
);

/** What is known of a thing; what is not known is left out. */
export const Facts = ({ items }: { readonly items: readonly (readonly [name: string, value: ReactNode])[] }) => (
  <FactList facts={items.map(([name, value]) => ({ name, value: value === false ? "" : value }))} />
);

interface SmallTableProps {
  readonly label: string;
  readonly head: readonly (string | { readonly number: string })[];
  /** Each with a key first. */
  readonly rows: readonly (readonly [key: string, ...cells: ReactNode[]])[];
}

/** A table of as many rows as fit on a page. */
export function SmallTable({ label, head, rows }: SmallTableProps) {
  const isNumber = (at: number) => typeof head[at] === "object" || undefined;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className={classes.scroll} tabIndex={0} aria-label={label}>
      <table className={classes.table}>
        <thead>
          <tr>
            {head.map((title, at) => (
              <th key={typeof title === "string" ? title : title.number} scope="col" data-number={isNumber(at)}>
                {typeof title === "string" ? title : title.number}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([key, ...cells]) => (
            <tr key={key}>
              {cells.map((cell, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: columns do not move
                <td key={at} data-number={isNumber(at)}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly choices: readonly (readonly [value: T, label: string])[];
  readonly onChoose: (value: T) => void;
}

/** One of a few ways to look at the same. */
export const Choice = <T extends string>({ label, value, choices, onChoose }: ChoiceProps<T>) => (
  // biome-ignore lint/a11y/useSemanticElements: a fieldset has a border and a legend, and these are buttons in a line
  <div className={classes.tabs} role="group" aria-label={label}>
    {choices.map(([each, text]) => (
      <button key={each} type="button" aria-pressed={each === value} onClick={() => onChoose(each)}>
        {text}
      </button>
    ))}
  </div>
);

/** A share of a whole, with both as words beside it. */
export function Meter({
  part,
  whole,
  label,
}: {
  readonly part: number;
  readonly whole: number;
  readonly label: string;
}) {
  const share = whole <= 0 ? 0 : Math.min(1, Math.max(0, part / whole));
  return (
    <span className={classes.meter} role="img" aria-label={label}>
      <span style={{ width: `${Math.round(share * 100)}%` }} />
    </span>
  );
}
