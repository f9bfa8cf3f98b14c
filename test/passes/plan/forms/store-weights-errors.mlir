// RUN: not tilewright-opt %s --tile-store-weights='recipes=%t.missing/recipes.json' 2>&1 | FileCheck %s
// CHECK: error: {{.*}}missing/recipes.json
module {
}
