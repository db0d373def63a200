/** The page `overview`. */
export default function OverviewPage() {
  return <h1>overview</h1>;
}
