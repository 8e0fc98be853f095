package objects_test

import (
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
)

func TestMemoryKeepsItsPromises(t *testing.T) {
	objectstest.Run(t, objectstest.Engine{Open: func(*testing.T) objects.Store { return objects.Memory() }})
}
