import { Link } from "@tanstack/react-router";
import { PAGES } from "../pages/pages.ts";
import { useMe } from "./me.tsx";
import classes from "./navigation.module.css";

const GROUPS = { fleet: "Fleet", work: "Work", system: "System" } as const;

/** The pages that the reader may use. */
export function Navigation({ isOpen }: { readonly isOpen: boolean }) {
  const { may } = useMe();
  const offered = PAGES.flatMap(({ path, title, nav, needs }) =>
    nav && (needs === undefined || may.has(needs)) ? [{ path, title, ...nav }] : [],
  );
  return (
    <nav className={classes.nav} aria-label="Pages" data-open={isOpen}>
      {Object.entries(GROUPS).map(([group, title]) => {
        const inside = offered.filter((page) => page.group === group);
        if (inside.length === 0) return null;
        return (
          <section key={group}>
            <h2>{title}</h2>
            <ul>
              {inside.map(({ path, title: label }) => (
                <li key={path}>
                  <Link to={path} activeOptions={{ exact: path === "/", includeSearch: false }}>
                    {label}
                  </Link>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
    </nav>
  );
}
