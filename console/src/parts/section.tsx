import type { ReactNode } from "react";
import classes from "./section.module.css";

interface SectionProps {
  readonly title: string;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}

export function Section({ title, aside, children }: SectionProps) {
  return (
    <section className={classes.section} aria-label={title}>
      <header className={classes.head}>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}
