// Command program links two modules, for tests of its bill of materials.
package main

import (
	"fmt"

	"github.com/google/licensecheck"
	"github.com/google/uuid"
)

func main() { fmt.Println(uuid.New(), licensecheck.Scan(nil)) }
