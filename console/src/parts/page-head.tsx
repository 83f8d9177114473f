import { type ReactNode, useEffect } from "react";
import classes from "./page-head.module.css";

interface PageHeadProps {
  readonly title: string;
  /** Beside the title, such as an id that is copied whole. */
  readonly aside?: ReactNode;
  readonly actions?: ReactNode;
}

/** The first line of every page, and the title of the tab. */
export function PageHead({ title, aside, actions }: PageHeadProps) {
  useEffect(() => {
    document.title = `${title} · Millwright`;
  }, [title]);
  return (
    <header className={classes.head}>
      <h1>{title}</h1>
      {aside !== undefined && <div className={classes.aside}>{aside}</div>}
      {actions !== undefined && <div className={classes.actions}>{actions}</div>}
    </header>
  );
}
